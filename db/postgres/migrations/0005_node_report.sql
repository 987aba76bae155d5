-- What a node says of itself with each heartbeat, as JSON: nodes of two releases may say different things.
ALTER TABLE node ADD COLUMN report text COLLATE "C";
