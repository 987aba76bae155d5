-- When a member last opened Overview, and which changes it has reported to them, on any of their devices.
CREATE TABLE overview_visit (
  org_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  since_ms INTEGER NOT NULL, -- when the report began
  at_ms INTEGER NOT NULL,
  hidden TEXT NOT NULL, -- JSON: names of changes
  shown TEXT NOT NULL, -- JSON: names of changes
  PRIMARY KEY (org_id, account_id)
) STRICT;
