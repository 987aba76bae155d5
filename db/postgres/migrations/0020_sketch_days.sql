-- Sketches of days are stored as ranks (db/sql/events/rollups/stored-days.ts). They are made again as due work. An earlier
-- release would read them as codes.
DELETE FROM rollup_day WHERE member IN (33, 34);
UPDATE event_org SET summed = 0;
