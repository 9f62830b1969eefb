import package_ from './index.js';

export const { createClient, middleware, version } = package_;
export default package_;
