-- From here on a row of event_body may have several blocks of a sealed segment (db/sql/events/blocks/body-table.ts), and
-- their numbers may be in less room (number-columns.ts). Blocks that are repacked already are repacked again.

UPDATE event_org SET repacked = 0;
