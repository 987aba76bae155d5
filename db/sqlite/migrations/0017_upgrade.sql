-- The newest schema that a node's release knows.
ALTER TABLE node ADD COLUMN schema INTEGER NOT NULL DEFAULT 0;
