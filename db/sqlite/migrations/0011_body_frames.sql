-- From here on the texts of a block lie in frames of 64 (db/sql/events/blocks/texts.ts), and a run of ids may have a filter
-- twice as long (db/sql/events/dedupe/id-run.ts). Blocks and runs of before are read as they are; the number of the schema
-- keeps earlier releases from data that they would misread.

SELECT 1;
