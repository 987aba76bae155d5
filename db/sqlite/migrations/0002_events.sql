-- The event engine. What each table holds is told at the head of the module that writes it (see DESIGN.md there).

CREATE TABLE event_seed (seed BLOB NOT NULL) STRICT;
INSERT INTO event_seed VALUES (randomblob(40)); -- 8 bytes for fingerprints and codes, 32 for erased ids

CREATE TABLE event_org (
  num INTEGER PRIMARY KEY,
  org_id TEXT NOT NULL UNIQUE,
  last_seq INTEGER NOT NULL, -- a floor, for when the newest blocks are gone; blocks themselves say the rest
  folded_seq INTEGER NOT NULL, -- rollups count arrivals up to here, at a block's end
  segments INTEGER NOT NULL -- sealed ones, from 0
) STRICT;

CREATE TABLE event_term (
  org INTEGER NOT NULL,
  member INTEGER NOT NULL,
  text TEXT NOT NULL,
  code INTEGER NOT NULL,
  PRIMARY KEY (org, member, text)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_block (
  place INTEGER PRIMARY KEY, -- org * 2^36 + first seq
  events INTEGER NOT NULL,
  min_at INTEGER NOT NULL,
  max_at INTEGER NOT NULL,
  checksum INTEGER NOT NULL, -- of the three blobs, for `verify`
  columns BLOB NOT NULL
) STRICT;

CREATE TABLE event_body (
  place INTEGER PRIMARY KEY,
  ids BLOB NOT NULL,
  bodies BLOB NOT NULL
) STRICT;

CREATE TABLE event_id_chunk (
  chunk INTEGER PRIMARY KEY, -- run * 1024 + bucket
  entries BLOB NOT NULL
) STRICT;

CREATE TABLE event_id_run (
  run INTEGER NOT NULL,
  org INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  PRIMARY KEY (run, org)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_id_filter (
  run INTEGER PRIMARY KEY,
  bits BLOB NOT NULL
) STRICT;

CREATE TABLE event_segment (
  org INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  min_at INTEGER NOT NULL,
  max_at INTEGER NOT NULL,
  zones BLOB NOT NULL,
  PRIMARY KEY (org, segment)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_posting (
  org INTEGER NOT NULL,
  member INTEGER NOT NULL,
  code INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  positions BLOB NOT NULL,
  PRIMARY KEY (org, member, code, segment)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_posting_rest (
  org INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  member INTEGER NOT NULL,
  first_code INTEGER NOT NULL,
  entries BLOB NOT NULL,
  PRIMARY KEY (org, segment, member, first_code)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_type_total (
  org INTEGER NOT NULL,
  type INTEGER NOT NULL,
  events INTEGER NOT NULL,
  PRIMARY KEY (org, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_value (
  org INTEGER NOT NULL,
  member INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  site INTEGER NOT NULL,
  type INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  code INTEGER NOT NULL,
  live INTEGER NOT NULL,
  expired INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (org, member, hour, site, type, outcome, code)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_metric (
  org INTEGER NOT NULL,
  hour INTEGER NOT NULL, -- occurredAt / 3,600,000
  site INTEGER NOT NULL,
  type INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  live INTEGER NOT NULL,
  expired INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (org, hour, site, type, outcome)
) STRICT, WITHOUT ROWID;

-- What ingest refused, the newest 1,000 of each organization.
CREATE TABLE rejected_sample (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  org_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  code TEXT NOT NULL,
  message TEXT NOT NULL,
  path TEXT NOT NULL,
  excerpt TEXT NOT NULL
) STRICT;

CREATE INDEX rejected_sample_org ON rejected_sample (org_id, seq);
