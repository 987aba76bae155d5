-- Counts by class and vendor together are rows of rollup_value with the member 36; `fillClassVendor` adds those of what is
-- folded already, in this transaction. They begin from nothing.

DELETE FROM rollup_value WHERE member = 36;
