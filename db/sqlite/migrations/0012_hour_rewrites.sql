-- How often counts of hours changed otherwise than by new events: erasure, removal, retention, repair. What a reader
-- keeps of hours (db/sql/events/rollups/hours.ts) holds until then.

ALTER TABLE event_org ADD COLUMN rewrites INTEGER NOT NULL DEFAULT 0;
