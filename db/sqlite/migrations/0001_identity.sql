-- Organizations, people, keys, secrets and the audit chain. Times are milliseconds since 1970 UTC.

CREATE TABLE org (
  id TEXT PRIMARY KEY NOT NULL,
  slug TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE account (
  id TEXT PRIMARY KEY NOT NULL,
  email TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  operator INTEGER NOT NULL CHECK (operator IN (0, 1)),
  created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE membership (
  account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  org_id TEXT NOT NULL REFERENCES org (id),
  role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'analyst', 'viewer')),
  PRIMARY KEY (account_id, org_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX membership_org ON membership (org_id);

-- Only the SHA-256 of a link's token is kept.
CREATE TABLE one_time_link (
  hash TEXT PRIMARY KEY NOT NULL,
  purpose TEXT NOT NULL CHECK (purpose IN ('setup', 'password')),
  account_id TEXT REFERENCES account (id) ON DELETE CASCADE,
  expires_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX one_time_link_account ON one_time_link (account_id);

CREATE TABLE sign_in (
  id TEXT PRIMARY KEY NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  org_id TEXT NOT NULL REFERENCES org (id),
  created_at_ms INTEGER NOT NULL,
  last_seen_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  address TEXT NOT NULL,
  user_agent TEXT NOT NULL
) STRICT;

CREATE INDEX sign_in_account ON sign_in (account_id);
CREATE INDEX sign_in_org ON sign_in (org_id);

-- Scopes and sites are JSON lists of text.
CREATE TABLE api_key (
  id TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL REFERENCES org (id),
  kind TEXT NOT NULL CHECK (kind IN ('ingest', 'secret', 'publishable')),
  label TEXT NOT NULL,
  prefix TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  site_ids TEXT NOT NULL,
  behind_proxy INTEGER NOT NULL CHECK (behind_proxy IN (0, 1)),
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  revoked_at_ms INTEGER,
  last_used_at_ms INTEGER,
  last_used_address TEXT,
  exposed_at_ms INTEGER
) STRICT;

CREATE INDEX api_key_org ON api_key (org_id);

CREATE TABLE store_secret (
  name TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT;

-- The evidence: the columns of the audit export by their names there, then the chain's. db/sql/audit/append.ts says how
-- a row is hashed. `position` counts an organization's rows from 1 and is padded with zeros, so that text order is
-- number order. Organizations are not referenced: a chain outlives its organization.
CREATE TABLE audit_entry (
  id TEXT NOT NULL UNIQUE,
  orgId TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  metadata TEXT NOT NULL,
  occurredAt TEXT NOT NULL,
  position TEXT NOT NULL,
  prevHash TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX audit_entry_position ON audit_entry (orgId, position);

CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry
BEGIN
  SELECT RAISE(ABORT, 'audit entries are never changed');
END;

CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry
BEGIN
  SELECT RAISE(ABORT, 'audit entries are never deleted');
END;

-- INSERT OR REPLACE would delete the row in its way without asking the trigger above.
CREATE TRIGGER audit_entry_no_replace BEFORE INSERT ON audit_entry
WHEN EXISTS (
  SELECT 1 FROM audit_entry
  WHERE rowid = NEW.rowid OR id = NEW.id OR (orgId = NEW.orgId AND position = NEW.position)
)
BEGIN
  SELECT RAISE(ABORT, 'audit entries are never replaced');
END;

CREATE TABLE audit_head (
  org_id TEXT PRIMARY KEY NOT NULL,
  count INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT;
