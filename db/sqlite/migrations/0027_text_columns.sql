-- From here on sealed blocks may have their texts as columns (db/sql/events/blocks/text-columns.ts). Blocks of before are
-- read as they are, and repacked while the server has time; the number of the schema keeps earlier releases away.

ALTER TABLE event_org ADD COLUMN repacked INTEGER NOT NULL DEFAULT 0; -- blocks of segments before it are done
