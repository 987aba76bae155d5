-- When a member last opened Overview, and which changes it has reported to them, on any of their devices.
CREATE TABLE overview_visit (
  org_id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  since_ms bigint NOT NULL, -- when the report began
  at_ms bigint NOT NULL,
  hidden text COLLATE "C" NOT NULL, -- JSON: names of changes
  shown text COLLATE "C" NOT NULL, -- JSON: names of changes
  PRIMARY KEY (org_id, account_id)
);
