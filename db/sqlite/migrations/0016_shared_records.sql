-- What one process kept in its memory or beside the database, and what nodes must share.

-- Attempts at signing in, by account and by sender, so that guesses spread over nodes or restarts count together. Names
-- are hashed, because people type passwords into the wrong field.
CREATE TABLE sign_in_throttle (
  name TEXT PRIMARY KEY NOT NULL,
  is_sender INTEGER NOT NULL CHECK (is_sender IN (0, 1)),
  failures INTEGER NOT NULL,
  refusals INTEGER NOT NULL,
  running INTEGER NOT NULL,
  running_until_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  last_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_throttle_age ON sign_in_throttle (is_sender, last_at_ms);

-- The newest erasure of each organization and how far it is. `run` differs for each one.
CREATE TABLE erasure (
  org_id TEXT PRIMARY KEY NOT NULL,
  run TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('session', 'subject')),
  node TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  seen_at_ms INTEGER NOT NULL,
  events INTEGER NOT NULL,
  deliveries INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  ended_at_ms INTEGER,
  log_emptied INTEGER CHECK (log_emptied IN (0, 1)),
  problem TEXT
) STRICT, WITHOUT ROWID;

-- Signed heads of the audit chains. Nodes have no folder in common; a data folder keeps them in a file, outside of what
-- they guard. `seq` counts without a gap.
CREATE TABLE audit_checkpoint (
  seq INTEGER PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL,
  count INTEGER NOT NULL,
  hash TEXT NOT NULL,
  at TEXT NOT NULL,
  key TEXT NOT NULL,
  signature TEXT NOT NULL
) STRICT;
CREATE INDEX audit_checkpoint_org ON audit_checkpoint (org_id, seq);
CREATE TRIGGER audit_checkpoint_no_update BEFORE UPDATE ON audit_checkpoint
BEGIN
  SELECT RAISE(ABORT, 'checkpoints of the audit trail are never changed');
END;
CREATE TRIGGER audit_checkpoint_no_delete BEFORE DELETE ON audit_checkpoint
BEGIN
  SELECT RAISE(ABORT, 'checkpoints of the audit trail are never deleted');
END;
-- INSERT OR REPLACE would delete the row in its way without asking the trigger above.
CREATE TRIGGER audit_checkpoint_no_replace BEFORE INSERT ON audit_checkpoint
WHEN EXISTS (SELECT 1 FROM audit_checkpoint WHERE seq = NEW.seq)
BEGIN
  SELECT RAISE(ABORT, 'checkpoints of the audit trail are never replaced');
END;

-- A known text, encrypted with the newest key of the key ring: a node whose ring cannot decrypt it has another one.
CREATE TABLE key_check (
  name TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The token of a setup link, encrypted with the key ring, so that every node prints the same link.
ALTER TABLE one_time_link ADD COLUMN sealed_token TEXT;
