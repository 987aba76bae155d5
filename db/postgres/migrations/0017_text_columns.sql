-- Sealed blocks may have their texts as columns (db/sql/events/blocks/text-columns.ts), for example those that were copied
-- from a data folder; the number of the schema keeps earlier releases away.
ALTER TABLE event_org ADD COLUMN repacked bigint NOT NULL DEFAULT 0; -- blocks of segments before it are done
