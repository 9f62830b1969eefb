-- The journal: what every room did, one row an event, never changed.
CREATE TABLE qm_journal (
    room text NOT NULL,
    generation bigint NOT NULL,
    seq bigint NOT NULL,
    event text NOT NULL,
    body jsonb NOT NULL,
    -- SHA-256 over the hash of the row before (32 zero octets before the first) and the event as
    -- the server writes it.
    hash bytea NOT NULL,
    PRIMARY KEY (room, generation, seq)
);
CREATE INDEX qm_journal_voided ON qm_journal (room, generation, seq) WHERE event = 'voided';

-- The rooms there are, and the generation of those that were.
CREATE TABLE qm_room (
    room text PRIMARY KEY,
    generation bigint NOT NULL,
    open boolean NOT NULL,
    ordinal bigserial NOT NULL
);

-- Whole states, so that a start does not fold every event again. `format` names the octets' form.
CREATE TABLE qm_snapshot (
    room text NOT NULL,
    generation bigint NOT NULL,
    seq bigint NOT NULL,
    format smallint NOT NULL,
    state bytea NOT NULL,
    hash bytea NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (room, generation, seq)
);
ALTER TABLE qm_snapshot ALTER COLUMN state SET STORAGE EXTERNAL;
