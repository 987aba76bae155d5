-- Members of the metadata by position in a sealed segment (db/sql/events/paths/columns.ts). Segments of before get
-- theirs as due work; until then their events are read.
CREATE TABLE event_path (
  org bigint NOT NULL,
  segment bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  packed bytea NOT NULL,
  PRIMARY KEY (org, segment, path)
);
ALTER TABLE event_path ALTER COLUMN packed SET STORAGE EXTERNAL;
ALTER TABLE event_org ADD COLUMN shredded bigint NOT NULL DEFAULT 0; -- segments before it have them
