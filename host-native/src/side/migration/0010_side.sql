-- Side data: operators and their sessions, links, the audit trail, history, notices, check-ins and
-- alerts. Times are epoch milliseconds.

CREATE TABLE operators (
    id text PRIMARY KEY,
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'owner')),
    created_at bigint NOT NULL,
    kid text NOT NULL,
    mac text NOT NULL,
    past_kids text[] NOT NULL DEFAULT '{}',
    UNIQUE (kid, mac)
);

-- holder_kind 'admin' names ADMIN_KEY by its verifier: another key ends the sessions of the old one.
CREATE TABLE console_sessions (
    id text PRIMARY KEY,
    holder_kind text NOT NULL CHECK (holder_kind IN ('admin', 'operator')),
    operator_id text REFERENCES operators (id) ON DELETE CASCADE,
    admin_kid text,
    admin_mac text,
    expires_at bigint NOT NULL,
    CHECK ((holder_kind = 'operator') = (operator_id IS NOT NULL)),
    CHECK ((holder_kind = 'admin') = (admin_kid IS NOT NULL AND admin_mac IS NOT NULL))
);
CREATE INDEX console_sessions_expiry ON console_sessions (expires_at);

CREATE TABLE monitor_links (
    id text PRIMARY KEY,
    label text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);

CREATE TABLE stream_tickets (
    digest text PRIMARY KEY,
    credential_kind text NOT NULL CHECK (credential_kind IN ('admin', 'operator', 'link', 'session')),
    credential_id text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX stream_tickets_expiry ON stream_tickets (expires_at);

CREATE TABLE check_ins (
    connector text NOT NULL,
    version text NOT NULL,
    room text NOT NULL,
    origin text NOT NULL,
    ok boolean NOT NULL,
    last_at bigint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (connector, version, room, origin)
);
CREATE INDEX check_ins_latest ON check_ins (last_at DESC);

CREATE TABLE alerts (
    kind text NOT NULL,
    room text NOT NULL DEFAULT '',
    level text NOT NULL,
    message text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (kind, room)
);
