-- Sums of whole days (db/sql/events/rollups/stored-days.ts). Days of before get theirs as due work; until then their hours
-- are read. An earlier release would not delete the sums of a day that changes.
CREATE TABLE rollup_day (
  org bigint NOT NULL,
  member bigint NOT NULL,
  day bigint NOT NULL, -- its first hour
  sums bytea NOT NULL,
  PRIMARY KEY (org, member, day)
);
ALTER TABLE rollup_day ALTER COLUMN sums SET STORAGE EXTERNAL;
ALTER TABLE event_org ADD COLUMN summed bigint NOT NULL DEFAULT 0; -- segments when the days were last examined
