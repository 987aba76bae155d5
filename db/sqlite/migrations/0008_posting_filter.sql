-- Which values a sealed segment may hold, of members that are always hashed (db/sql/events/index/posting.ts). Segments
-- of before get theirs later, a few at a time; until then their index is asked.

CREATE TABLE event_posting_filter (
  org INTEGER NOT NULL,
  member INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  bits BLOB NOT NULL,
  PRIMARY KEY (org, member, segment)
) STRICT, WITHOUT ROWID;
