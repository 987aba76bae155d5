-- The tables of SQLite's schema 14 (db/sqlite/migrations/), in the schema of the connection's search_path. Integers and
-- booleans are bigint, because both engines store booleans as 0 and 1. Texts are COLLATE "C": both engines order them
-- by their bytes. Blobs are compressed by us, so PostgreSQL stores them as they are (STORAGE EXTERNAL). Foreign keys
-- are DEFERRABLE for the deletion of an organization. Times are milliseconds since 1970 UTC.

-- Every transaction that writes records locks this row first, so that records have one writer at a time across all
-- nodes, as in SQLite.
CREATE TABLE store_lock (name text COLLATE "C" PRIMARY KEY NOT NULL);
INSERT INTO store_lock (name) VALUES ('records');

CREATE TABLE org (
  id text COLLATE "C" PRIMARY KEY NOT NULL,
  slug text COLLATE "C" NOT NULL UNIQUE,
  name text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL
);

CREATE TABLE org_deletion (
  org_id text COLLATE "C" PRIMARY KEY NOT NULL REFERENCES org (id) DEFERRABLE,
  asked_at_ms bigint NOT NULL,
  due_at_ms bigint NOT NULL
);

-- What an organization asks of its members before they see its data.
CREATE TABLE org_sign_in_rule (
  org_id text COLLATE "C" PRIMARY KEY NOT NULL REFERENCES org (id) DEFERRABLE,
  second_factor_required bigint NOT NULL CHECK (second_factor_required IN (0, 1))
);

-- The settings of a site. Its events show that it exists.
CREATE TABLE site (
  org_id text COLLATE "C" NOT NULL REFERENCES org (id) DEFERRABLE,
  site_id text COLLATE "C" NOT NULL,
  name text COLLATE "C",
  hidden bigint NOT NULL CHECK (hidden IN (0, 1)),
  restricted bigint NOT NULL CHECK (restricted IN (0, 1)),
  PRIMARY KEY (org_id, site_id)
);

CREATE TABLE saved_view (
  id text COLLATE "C" PRIMARY KEY NOT NULL,
  org_id text COLLATE "C" NOT NULL REFERENCES org (id) DEFERRABLE,
  name text COLLATE "C" NOT NULL,
  search text COLLATE "C" NOT NULL,
  created_by text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL
);
CREATE UNIQUE INDEX saved_view_name ON saved_view (org_id, name);

CREATE TABLE account (
  id text COLLATE "C" PRIMARY KEY NOT NULL,
  email text COLLATE "C" NOT NULL UNIQUE,
  password_hash text COLLATE "C" NOT NULL,
  operator bigint NOT NULL CHECK (operator IN (0, 1)),
  created_at_ms bigint NOT NULL
);

CREATE TABLE membership (
  account_id text COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE DEFERRABLE,
  org_id text COLLATE "C" NOT NULL REFERENCES org (id) DEFERRABLE,
  role text COLLATE "C" NOT NULL CHECK (role IN ('owner', 'admin', 'analyst', 'viewer')),
  PRIMARY KEY (account_id, org_id)
);
CREATE INDEX membership_org ON membership (org_id);

-- The networks (an IPv4 address, the /64 of an IPv6 one) from which an account signed in.
CREATE TABLE account_network (
  account_id text COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE DEFERRABLE,
  network text COLLATE "C" NOT NULL,
  last_at_ms bigint NOT NULL,
  PRIMARY KEY (account_id, network)
);

-- Only the SHA-256 of a link's token is stored.
CREATE TABLE one_time_link (
  hash text COLLATE "C" PRIMARY KEY NOT NULL,
  purpose text COLLATE "C" NOT NULL CHECK (purpose IN ('setup', 'password')),
  account_id text COLLATE "C" REFERENCES account (id) ON DELETE CASCADE DEFERRABLE,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX one_time_link_account ON one_time_link (account_id);

-- Only the SHA-256 of a link's token is stored.
CREATE TABLE invitation (
  id text COLLATE "C" PRIMARY KEY NOT NULL,
  hash text COLLATE "C" NOT NULL UNIQUE,
  org_id text COLLATE "C" NOT NULL REFERENCES org (id) DEFERRABLE,
  email text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL CHECK (role IN ('owner', 'admin', 'analyst', 'viewer')),
  invited_by text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX invitation_org ON invitation (org_id, email);

CREATE TABLE sign_in (
  id text COLLATE "C" PRIMARY KEY NOT NULL,
  token_hash text COLLATE "C" NOT NULL UNIQUE,
  account_id text COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE DEFERRABLE,
  org_id text COLLATE "C" NOT NULL REFERENCES org (id) DEFERRABLE,
  created_at_ms bigint NOT NULL,
  last_seen_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  address text COLLATE "C" NOT NULL,
  user_agent text COLLATE "C" NOT NULL,
  by_provider bigint NOT NULL DEFAULT 0 CHECK (by_provider IN (0, 1))
);
CREATE INDEX sign_in_account ON sign_in (account_id);
CREATE INDEX sign_in_org ON sign_in (org_id);

-- The seed is encrypted with a key that the database does not have.
CREATE TABLE second_factor (
  account_id text COLLATE "C" PRIMARY KEY NOT NULL REFERENCES account (id) ON DELETE CASCADE DEFERRABLE,
  sealed_seed text COLLATE "C" NOT NULL,
  last_step bigint NOT NULL,
  since_ms bigint NOT NULL
);

CREATE TABLE recovery_code (
  account_id text COLLATE "C" NOT NULL REFERENCES second_factor (account_id) ON DELETE CASCADE DEFERRABLE,
  hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (account_id, hash)
);

CREATE TABLE external_identity (
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL REFERENCES account (id) ON DELETE CASCADE DEFERRABLE,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX external_identity_account ON external_identity (account_id);

-- Scopes and sites are JSON lists of text.
CREATE TABLE api_key (
  id text COLLATE "C" PRIMARY KEY NOT NULL,
  org_id text COLLATE "C" NOT NULL REFERENCES org (id) DEFERRABLE,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('ingest', 'secret', 'publishable')),
  label text COLLATE "C" NOT NULL,
  prefix text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL UNIQUE,
  scopes text COLLATE "C" NOT NULL,
  site_ids text COLLATE "C" NOT NULL,
  behind_proxy bigint NOT NULL CHECK (behind_proxy IN (0, 1)),
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  last_used_at_ms bigint,
  last_used_address text COLLATE "C",
  exposed_at_ms bigint
);
CREATE INDEX api_key_org ON api_key (org_id);

CREATE TABLE store_secret (
  name text COLLATE "C" PRIMARY KEY NOT NULL,
  value text COLLATE "C" NOT NULL
);

-- The evidence: the columns of the audit export by their names there, then the chain's (db/sql/audit/append.ts).
-- `position` counts an organization's entries from 1 and is padded with zeros, so that text order is number order.
-- Organizations are not referenced: a chain outlives its organization. `rowid` increases with every entry of any
-- organization, because the lock on records orders their transactions.
CREATE TABLE audit_entry (
  rowid bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  "orgId" text COLLATE "C" NOT NULL,
  actor text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  metadata text COLLATE "C" NOT NULL,
  "occurredAt" text COLLATE "C" NOT NULL,
  position text COLLATE "C" NOT NULL,
  "prevHash" text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX audit_entry_position ON audit_entry ("orgId", position);
CREATE INDEX audit_entry_actor ON audit_entry ("orgId", actor, position);
CREATE INDEX audit_entry_action ON audit_entry ("orgId", action, position);

CREATE TABLE audit_head (
  org_id text COLLATE "C" PRIMARY KEY NOT NULL,
  count bigint NOT NULL,
  hash text COLLATE "C" NOT NULL
);

-- The chain of `org_id` begins after its entry number `count`, whose hash was `hash` (db/sql/audit/trim.ts).
CREATE TABLE audit_trim (
  org_id text COLLATE "C" PRIMARY KEY NOT NULL,
  count bigint NOT NULL,
  hash text COLLATE "C" NOT NULL,
  at text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  signature text COLLATE "C" NOT NULL
);

-- The triggers reject every change of the evidence, except the deletion of entries that a signed trim covers. Entries
-- cannot be replaced, because PostgreSQL has no INSERT OR REPLACE. The trims are named with their schema, so that a
-- temporary table of a session never stands for them.
CREATE FUNCTION audit_entry_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_trimmed boolean;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    RAISE EXCEPTION 'audit entries are never changed';
  END IF;
  IF TG_OP = 'DELETE' THEN
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I.audit_trim WHERE org_id = $1 AND count >= $2)', TG_TABLE_SCHEMA)
      INTO is_trimmed USING OLD."orgId", OLD.position::bigint;
    IF is_trimmed THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'audit entries are never deleted';
END
$$;
CREATE TRIGGER audit_entry_no_change BEFORE UPDATE OR DELETE ON audit_entry
  FOR EACH ROW EXECUTE FUNCTION audit_entry_guard();
CREATE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE ON audit_entry
  FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_guard();

CREATE FUNCTION audit_trim_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF NEW.org_id = OLD.org_id AND NEW.count > OLD.count THEN
      RETURN NEW;
    END IF;
    RAISE EXCEPTION 'trims of the audit trail never go back';
  END IF;
  RAISE EXCEPTION 'trims of the audit trail are never deleted';
END
$$;
CREATE TRIGGER audit_trim_only_on BEFORE UPDATE OR DELETE ON audit_trim
  FOR EACH ROW EXECUTE FUNCTION audit_trim_guard();
CREATE TRIGGER audit_trim_no_truncate BEFORE TRUNCATE ON audit_trim
  FOR EACH STATEMENT EXECUTE FUNCTION audit_trim_guard();
