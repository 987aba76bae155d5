-- Retention by organization, and how far the hourly re-count has come.

-- Null: as the appliance was started.
CREATE TABLE retention (
  org_id TEXT PRIMARY KEY NOT NULL REFERENCES org (id),
  days INTEGER,
  bytes INTEGER
) STRICT;

-- Hours that ended up to `through_ms` have been counted again; `repaired` rollup rows were wrong so far.
CREATE TABLE rollup_recount (
  org_id TEXT PRIMARY KEY NOT NULL,
  through_ms INTEGER NOT NULL,
  repaired INTEGER NOT NULL
) STRICT;
