-- What one process kept in its memory or beside the database, and what nodes must share.

-- Attempts at signing in, by account and by sender, so that guesses spread over nodes or restarts count together. Names
-- are hashed, because people type passwords into the wrong field.
CREATE TABLE sign_in_throttle (
  name text COLLATE "C" PRIMARY KEY NOT NULL,
  is_sender bigint NOT NULL CHECK (is_sender IN (0, 1)),
  failures bigint NOT NULL,
  refusals bigint NOT NULL,
  running bigint NOT NULL,
  running_until_ms bigint NOT NULL,
  until_ms bigint NOT NULL,
  last_at_ms bigint NOT NULL
);
CREATE INDEX sign_in_throttle_age ON sign_in_throttle (is_sender, last_at_ms);

-- The newest erasure of each organization and how far it is. `run` differs for each one.
CREATE TABLE erasure (
  org_id text COLLATE "C" PRIMARY KEY NOT NULL,
  run text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('session', 'subject')),
  node text COLLATE "C" NOT NULL,
  started_at_ms bigint NOT NULL,
  seen_at_ms bigint NOT NULL,
  events bigint NOT NULL,
  deliveries bigint NOT NULL,
  samples bigint NOT NULL,
  ended_at_ms bigint,
  log_emptied bigint CHECK (log_emptied IN (0, 1)),
  problem text COLLATE "C"
);

-- Signed heads of the audit chains. Nodes have no folder in common; a data folder keeps them in a file, outside of what
-- they guard. `seq` counts without a gap.
CREATE TABLE audit_checkpoint (
  seq bigint PRIMARY KEY NOT NULL,
  org_id text COLLATE "C" NOT NULL,
  count bigint NOT NULL,
  hash text COLLATE "C" NOT NULL,
  at text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  signature text COLLATE "C" NOT NULL
);
CREATE INDEX audit_checkpoint_org ON audit_checkpoint (org_id, seq);
CREATE FUNCTION audit_checkpoint_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'checkpoints of the audit trail are never changed';
END
$$;
CREATE TRIGGER audit_checkpoint_no_change BEFORE UPDATE OR DELETE ON audit_checkpoint
  FOR EACH ROW EXECUTE FUNCTION audit_checkpoint_guard();
CREATE TRIGGER audit_checkpoint_no_truncate BEFORE TRUNCATE ON audit_checkpoint
  FOR EACH STATEMENT EXECUTE FUNCTION audit_checkpoint_guard();

-- A known text, encrypted with the newest key of the key ring: a node whose ring cannot decrypt it has another one.
CREATE TABLE key_check (
  name text COLLATE "C" PRIMARY KEY NOT NULL,
  value text COLLATE "C" NOT NULL
);

-- The token of a setup link, encrypted with the key ring, so that every node prints the same link.
ALTER TABLE one_time_link ADD COLUMN sealed_token text COLLATE "C";
