-- What the first use and the fault run asked for: one section per feature.

-- Which set of fields a sealed segment's index covers. A segment of an older set is scanned for the fields it lacks.
ALTER TABLE event_segment ADD COLUMN index_version INTEGER NOT NULL DEFAULT 1;
