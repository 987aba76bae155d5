-- Retention of the audit trail: a chain may begin after a point that the appliance signed (db/sql/audit/trim.ts).

-- The chain of `org_id` begins after its entry number `count`, whose hash was `hash`.
CREATE TABLE audit_trim (
  org_id TEXT PRIMARY KEY NOT NULL,
  count INTEGER NOT NULL,
  hash TEXT NOT NULL,
  at TEXT NOT NULL,
  key TEXT NOT NULL,
  signature TEXT NOT NULL
) STRICT;

CREATE TRIGGER audit_trim_no_delete BEFORE DELETE ON audit_trim
BEGIN
  SELECT RAISE(ABORT, 'trims of the audit trail are never deleted');
END;

CREATE TRIGGER audit_trim_only_on BEFORE UPDATE ON audit_trim
WHEN NEW.org_id <> OLD.org_id OR NEW.count <= OLD.count
BEGIN
  SELECT RAISE(ABORT, 'trims of the audit trail never go back');
END;

DROP TRIGGER audit_entry_no_delete;

CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry
WHEN NOT EXISTS (
  SELECT 1 FROM audit_trim WHERE org_id = OLD.orgId AND count >= CAST(OLD.position AS INTEGER)
)
BEGIN
  SELECT RAISE(ABORT, 'audit entries are never deleted');
END;

-- Null: as the appliance was started.
ALTER TABLE retention ADD COLUMN audit_days INTEGER;
