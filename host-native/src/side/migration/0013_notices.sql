-- Mail notices by place. place_kind 'n' is a ticket, 'q' a place before the opening.

CREATE TABLE notices (
    room text NOT NULL,
    generation bigint NOT NULL,
    place_kind text NOT NULL CHECK (place_kind IN ('n', 'q')),
    place bigint NOT NULL,
    email text NOT NULL,
    language text NOT NULL,
    owner text,
    requested_at bigint NOT NULL,
    delivery text NOT NULL CHECK (delivery IN ('pending', 'sending', 'sent', 'failed')),
    PRIMARY KEY (room, generation, place_kind, place)
);
CREATE INDEX notices_pending ON notices (room, generation, place) WHERE delivery = 'pending';
CREATE INDEX notices_age ON notices (requested_at);
