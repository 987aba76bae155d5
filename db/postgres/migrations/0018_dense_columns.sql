-- Sealed blocks may have their numbers in less room (db/sql/events/blocks/number-columns.ts), for example those that were
-- copied from a data folder; the number of the schema keeps earlier releases away.
SELECT 1;
