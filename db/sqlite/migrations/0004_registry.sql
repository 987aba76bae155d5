-- Pushed tool registries and site memory with their versions, and what ingest counted by hour and key.

CREATE TABLE registry_tool (
  org_id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL, -- the newest row of registry_tool_version
  digest TEXT NOT NULL, -- of the descriptor by value
  first_at_ms INTEGER NOT NULL,
  changed_at_ms INTEGER NOT NULL,
  removed_at_ms INTEGER,
  PRIMARY KEY (org_id, site_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE registry_tool_version (
  org_id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  change TEXT NOT NULL CHECK (change IN ('added', 'changed', 'removed', 'restored')),
  descriptor BLOB NOT NULL, -- JSON as sent, zstd; of a removed one: as it last was
  UNIQUE (org_id, site_id, name, version)
) STRICT;

CREATE TABLE memory_site (
  org_id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  digest TEXT NOT NULL, -- of snapshot and score by value
  first_at_ms INTEGER NOT NULL,
  changed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (org_id, site_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_version (
  org_id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  score REAL NOT NULL,
  computed INTEGER NOT NULL, -- 1: we made the score, 0: it was sent
  bytes INTEGER NOT NULL, -- of the snapshot's JSON text
  snapshot BLOB NOT NULL, -- JSON as sent, zstd
  UNIQUE (org_id, site_id, version)
) STRICT;

CREATE TABLE ingest_hour (
  org_id TEXT NOT NULL,
  hour INTEGER NOT NULL, -- of arrival / 3,600,000
  key_id TEXT NOT NULL,
  requests INTEGER NOT NULL,
  refused INTEGER NOT NULL, -- requests of which nothing was taken
  accepted INTEGER NOT NULL,
  deduped INTEGER NOT NULL,
  rejected INTEGER NOT NULL, -- events
  ahead_max_ms INTEGER NOT NULL, -- how far an event lay in our future at most
  behind_min_ms INTEGER, -- how far the newest event of a request lay in our past at least
  PRIMARY KEY (org_id, hour, key_id)
) STRICT, WITHOUT ROWID;
