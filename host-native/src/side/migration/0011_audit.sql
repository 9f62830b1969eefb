-- The audit trail takes rows and nothing else: the database itself refuses to change or drop one.

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    via text NOT NULL,
    address text NOT NULL,
    action text NOT NULL,
    room text,
    detail jsonb NOT NULL
);
CREATE INDEX audit_room ON audit (room, id DESC) WHERE room IS NOT NULL;

CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only';
END;
$$;

CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
