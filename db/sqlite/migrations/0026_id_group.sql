-- Groups of 32 id runs whose chunks are merged (db/sql/events/dedupe/id-group.ts). Groups of before are merged while
-- events are stored; until then their runs are read.

CREATE TABLE event_id_group (
  first_run INTEGER PRIMARY KEY,
  chunks INTEGER NOT NULL, -- those before it are merged
  parts INTEGER NOT NULL -- rows of event_id_filter that hold a part of its filter
) STRICT;
