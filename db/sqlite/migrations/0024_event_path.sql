-- Members of the metadata by position in a sealed segment (db/sql/events/paths/columns.ts). Segments of before get
-- theirs while the server has time; until then their events are read.

CREATE TABLE event_path (
  org INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  path TEXT NOT NULL,
  packed BLOB NOT NULL,
  PRIMARY KEY (org, segment, path)
) STRICT, WITHOUT ROWID;

ALTER TABLE event_org ADD COLUMN shredded INTEGER NOT NULL DEFAULT 0; -- segments before it have them
