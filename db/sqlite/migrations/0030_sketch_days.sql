-- Sketches of days are stored as ranks (db/sql/events/rollups/stored-days.ts). They are made again in spare time.
DELETE FROM rollup_day WHERE member IN (33, 34);
UPDATE event_org SET summed = 0;
