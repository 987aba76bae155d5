-- Deletion with grace, sites, invitations, second factors and identities of other providers.

CREATE TABLE org_deletion (
  org_id TEXT PRIMARY KEY NOT NULL REFERENCES org (id),
  asked_at_ms INTEGER NOT NULL,
  due_at_ms INTEGER NOT NULL
) STRICT;

-- What people chose for a site; that it exists is known from its events.
CREATE TABLE site (
  org_id TEXT NOT NULL REFERENCES org (id),
  site_id TEXT NOT NULL,
  name TEXT,
  hidden INTEGER NOT NULL CHECK (hidden IN (0, 1)),
  restricted INTEGER NOT NULL CHECK (restricted IN (0, 1)),
  PRIMARY KEY (org_id, site_id)
) STRICT, WITHOUT ROWID;

-- Only the SHA-256 of a link's token is kept.
CREATE TABLE invitation (
  id TEXT PRIMARY KEY NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  org_id TEXT NOT NULL REFERENCES org (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'analyst', 'viewer')),
  invited_by TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX invitation_org ON invitation (org_id, email);

-- The seed is sealed under the key file of the data folder; the store cannot read it.
CREATE TABLE second_factor (
  account_id TEXT PRIMARY KEY NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  sealed_seed TEXT NOT NULL,
  last_step INTEGER NOT NULL,
  since_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE recovery_code (
  account_id TEXT NOT NULL REFERENCES second_factor (account_id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  PRIMARY KEY (account_id, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE external_identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX external_identity_account ON external_identity (account_id);

-- The audit page asks for these; the trail itself is as it was.
CREATE INDEX audit_entry_action ON audit_entry (orgId, action, position);
CREATE INDEX audit_entry_actor ON audit_entry (orgId, actor, position);
