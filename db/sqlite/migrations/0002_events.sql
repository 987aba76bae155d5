-- The plain event engine: one row an event, plus the counts behind the guard rails and the overview.

CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  org_id TEXT NOT NULL,
  id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  occurred_at_ms INTEGER NOT NULL,
  received_at_ms INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  type TEXT NOT NULL,
  outcome TEXT NOT NULL,
  tool TEXT,
  duration_ms REAL,
  class TEXT,
  vendor TEXT,
  trust TEXT,
  protocol TEXT,
  subject TEXT,
  page TEXT,
  decision TEXT,
  rule_id TEXT,
  reason TEXT,
  json TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX event_id ON event (org_id, id);
CREATE INDEX event_time ON event (org_id, occurred_at_ms, seq);
CREATE INDEX event_arrival ON event (org_id, seq);

CREATE TABLE event_value (
  org_id TEXT NOT NULL,
  member TEXT NOT NULL CHECK (member IN ('type', 'outcome', 'siteId')),
  value TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (org_id, member, value)
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
