-- A room's history by bucket. Counts are totals of the bucket: an instance that follows the same
-- events writes the same numbers, so the larger one is the later one.

CREATE TABLE history (
    room text NOT NULL,
    grain_ms bigint NOT NULL,
    start bigint NOT NULL,
    joins bigint NOT NULL,
    passes bigint NOT NULL,
    admitted bigint NOT NULL,
    abandoned bigint NOT NULL,
    expired bigint NOT NULL,
    peak_waiting bigint NOT NULL,
    waiting bigint NOT NULL,
    sessions bigint NOT NULL,
    waits_seen bigint NOT NULL,
    waits_seconds integer[] NOT NULL,
    PRIMARY KEY (room, grain_ms, start)
);
CREATE INDEX history_age ON history (grain_ms, start);
