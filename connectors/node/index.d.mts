import type { Client, Decision, Middleware, Options, QueueEvent } from './index.js';

export type { Client, Decision, Middleware, Options, QueueEvent };
export declare function middleware(options: Options): Middleware;
export declare function createClient(options: Options): Client;
export declare const version: string;
declare const _default: { middleware: typeof middleware; createClient: typeof createClient; version: string };
export default _default;
