-- Access logs: how far each was read, and requests by hour, site and kind. Both change in the transaction of the events.

-- lines = stored + deduped + people + assets + bots + notes + bad. `checksum` is of the other columns.
CREATE TABLE access_source (
  org_id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  source TEXT NOT NULL,
  path TEXT NOT NULL,
  format TEXT NOT NULL,
  position INTEGER NOT NULL,
  tail TEXT NOT NULL,
  lines INTEGER NOT NULL,
  stored INTEGER NOT NULL,
  deduped INTEGER NOT NULL,
  people INTEGER NOT NULL,
  assets INTEGER NOT NULL,
  bots INTEGER NOT NULL,
  notes INTEGER NOT NULL,
  bad INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  newest_ms INTEGER,
  updated_ms INTEGER NOT NULL,
  is_drain INTEGER NOT NULL CHECK (is_drain IN (0, 1)),
  expires_ms INTEGER NOT NULL, -- when its sums move to the row `(drains)` or `(older)` of its site
  checksum INTEGER NOT NULL,
  PRIMARY KEY (org_id, site_id, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX access_source_expiry ON access_source (org_id, expires_ms);
CREATE INDEX access_source_updated ON access_source (org_id, is_drain, updated_ms);

-- Hour -1 has the sums of the hours that have expired. checksum = 31 requests + 7 bytes + hour.
CREATE TABLE access_hour (
  org_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  site_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('agent', 'person', 'asset', 'bot')),
  requests INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (org_id, hour, site_id, kind)
) STRICT, WITHOUT ROWID;
