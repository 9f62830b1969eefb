import type { IncomingMessage, ServerResponse } from 'node:http';

/** Something an operator may want to count or log. No text has a visitor's token or address in it. */
export interface QueueEvent {
  /**
   * `failover`: a visitor passed because the queue server did not answer. `key_refused`: everybody
   * passes because the server refuses the key. `no_room`: everybody passes because the server has
   * no such room. `busy`: the server sheds load, visitors wait. `misconfigured`: a setting cannot
   * work as it is. `drift`: another version of this package is served by the queue server.
   * `verify`: a failed point of the installation check.
   */
  type: 'failover' | 'key_refused' | 'no_room' | 'busy' | 'no_visitor' | 'misconfigured' | 'drift' | 'verify';
  roomId: string;
  message: string;
  /** Why a visitor passed unchecked: `timeout`, `unreachable`, `http-<status>`, `invalid-response`. */
  failover?: string;
}

export interface Options {
  /** Origin of the queue server, for example `https://queue.example.com`. */
  server: string;
  /** The room id, exactly as the console shows it. */
  roomId: string;
  /** `PUBLIC_API_KEY` of the queue server, never `ADMIN_KEY`. Required unless `vouch` is false. */
  publicApiKey?: string;
  /** How long one request may wait for the queue server, all questions together. Default 2000. */
  timeoutMs?: number;
  /** Proxies in front of this app. The visitor's address is that many entries from the right. */
  trustProxy?: number;
  /** Gives the visitor's address itself, for example `(req) => req.headers['cf-connecting-ip']`. */
  vouchIp?: (req: IncomingMessage) => string | null | undefined;
  /** Public origin of this site, for the way back. Default: what a trusted proxy says. */
  origin?: string;
  cookie?: {
    /** Whether our cookies are `Secure`. Default: when the page is https. */
    secure?: boolean;
    /** The name of the cookie with the pass. Default: `qm_<roomId>`. */
    name?: string;
  };
  /** Which requests are checked: all (the default), page loads, or only documents. */
  gate?: 'all' | 'navigations' | 'documents';
  /** False asks in this server's own name, without a key; the visitor then shows the door key. */
  vouch?: boolean;
  /** Called for every event; nothing is written to the console then. */
  onEvent?: (event: QueueEvent) => void;
}

/** What the queue decided about a request. */
export interface Decision {
  /** `pass`: go on. `respond`: answer with `status`, `headers` and `body` instead. */
  action: 'pass' | 'respond';
  /** On `respond`: the waiting page, when that is where the visitor goes. */
  waitingRoomUrl?: string;
  status?: number;
  headers?: Array<[name: string, value: string]>;
  body?: string;
  /** On `pass`: `Set-Cookie` values for the answer. */
  cookies?: string[];
  /** On `pass`: the path without the pass, where it had one. */
  url?: string;
  /** On `pass`: why the request was not checked. */
  failover?: string;
  /** On `pass`: whether the queue server was asked at all. */
  checked?: boolean;
}

export interface Client {
  /** Decides about a request. Never rejects. */
  check(req: IncomingMessage): Promise<Decision>;
}

export type Middleware = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => Promise<void>;

/**
 * The door of a room, for Express, Connect and `node:http`; made once, at start. Throws on options
 * that cannot work.
 */
export function middleware(options: Options): Middleware;

/** The same decision, made once at start too, without an answer, for frameworks with other shapes and for API routes. */
export function createClient(options: Options): Client;

/** The version of this package. */
export const version: string;
