-- The evidence pack in force when an operator replaced the bundled one, for every node.

-- The file as it was stored, and who vouches for it: the key of a release, or nobody when it was trusted unsigned.
CREATE TABLE evidence_pack (
  name TEXT PRIMARY KEY NOT NULL CHECK (name IN ('current')),
  digest TEXT NOT NULL,
  pack TEXT NOT NULL,
  signed_by TEXT,
  stored_by TEXT NOT NULL,
  stored_at_ms INTEGER NOT NULL
) STRICT;
