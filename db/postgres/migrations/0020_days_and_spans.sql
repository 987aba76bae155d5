-- Sketches of days are stored as ranks (db/sql/events/rollups/stored-days.ts). They are made again as due work. An earlier
-- release would read them as codes.
DELETE FROM rollup_day WHERE member IN (33, 34);
UPDATE event_org SET summed = 0;

-- Every read begins with the spans of all segments, whose rows have 8 KiB of zones.
CREATE INDEX event_segment_span ON event_segment (org, segment, min_at, max_at, index_version);
