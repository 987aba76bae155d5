-- Sketches of days are stored as ranks (db/sql/events/rollups/stored-days.ts). They are made again in spare time.
DELETE FROM rollup_day WHERE member IN (33, 34);
UPDATE event_org SET summed = 0;

-- Every read begins with the spans of all segments. In the table their last column follows the zones, which are 8 KiB.
CREATE INDEX event_segment_span ON event_segment (org, segment, min_at, max_at, index_version);
