'use strict';

const { createClient } = require('./lib/client.js');
const { middleware } = require('./lib/middleware.js');
const { version } = require('./package.json');

module.exports = { createClient, middleware, version };
