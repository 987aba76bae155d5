-- The evidence pack in force when an operator replaced the bundled one, for every node.

-- The file as it was stored, and who vouches for it: the key of a release, or nobody when it was trusted unsigned.
CREATE TABLE evidence_pack (
  name text COLLATE "C" PRIMARY KEY NOT NULL CHECK (name IN ('current')),
  digest text COLLATE "C" NOT NULL,
  pack text COLLATE "C" NOT NULL,
  signed_by text COLLATE "C",
  stored_by text COLLATE "C" NOT NULL,
  stored_at_ms bigint NOT NULL
);
