-- Sums of whole days (db/sql/events/rollups/stored-days.ts). Days of before get theirs while the server has time; until
-- then their hours are read.

CREATE TABLE rollup_day (
  org INTEGER NOT NULL,
  member INTEGER NOT NULL,
  day INTEGER NOT NULL, -- its first hour
  sums BLOB NOT NULL,
  PRIMARY KEY (org, member, day)
) STRICT, WITHOUT ROWID;

ALTER TABLE event_org ADD COLUMN summed INTEGER NOT NULL DEFAULT 0; -- segments when the days were last examined
