#!/usr/bin/env node
'use strict';

const { main } = require('../lib/cli.js');

main(process.argv.slice(2), process.env).then((code) => {
  process.exitCode = code;
});
