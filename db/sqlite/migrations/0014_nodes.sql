-- What nodes on one database share. A data folder has one node, and the tables are the same on every engine.

-- Rises with every change of what nodes cache: `keys` and `sites`.
CREATE TABLE cache_version (
  name TEXT PRIMARY KEY NOT NULL,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which node runs a job of the whole appliance. The lease rises with each claim, so a node that lost it cannot pass for
-- the new holder.
CREATE TABLE job_lease (
  job TEXT PRIMARY KEY NOT NULL,
  node TEXT NOT NULL,
  lease INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The nodes that run, or ran within a day.
CREATE TABLE node (
  name TEXT PRIMARY KEY NOT NULL,
  version TEXT NOT NULL,
  role TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  seen_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
