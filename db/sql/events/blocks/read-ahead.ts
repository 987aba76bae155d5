/** Reads the blobs of several blocks in one statement, for engines in which each statement is a round trip. */
import type { Database } from '../../database.ts'

/*
 * Loops over blocks announce which they visit next. The blobs wait here until their block is opened, in the transaction
 * of the same loop. The first group is small, because many loops stop at the first blocks.
 */
const firstGroup = 4

/** A block's texts are eight times as long as its columns. */
const textsDivisor = 4

interface Block {
  place: number
}

interface Texts {
  ids: Uint8Array
  bodies: Uint8Array
}

interface Stash {
  columns: Map<number, Uint8Array>
  texts: Map<number, Texts>
}

const stashes = new WeakMap<Database, Stash>()

/** The columns of a block, when they were read ahead. */
export function columnsRead(db: Database, place: number): Uint8Array | undefined {
  return stashes.get(db)?.columns.get(place)
}

/** The texts of a block, when they were read ahead. */
export function textsRead(db: Database, place: number): Texts | undefined {
  return stashes.get(db)?.texts.get(place)
}

/** The same zones in the same order. `isCached`: whose columns need not be read. */
export function columnsAhead<Z extends Block>(
  db: Database,
  zones: readonly Z[],
  isCached: (zone: Z) => boolean,
): Iterable<Z> {
  return db.dialect.blocksAhead > 1 && zones.length > 1 ? readColumnsAhead(db, zones, isCached) : zones
}

function* readColumnsAhead<Z extends Block>(
  db: Database,
  zones: readonly Z[],
  isCached: (zone: Z) => boolean,
): Generator<Z> {
  const { columns } = stashOf(db)
  const sql = 'SELECT place, columns FROM event_block'
  for (const group of groups(zones, db.dialect.blocksAhead)) {
    const places = group.filter((zone) => !isCached(zone)).map(({ place }) => place)
    try {
      for (const row of readAll<Block & { columns: Uint8Array }>(db, sql, places))
        columns.set(row.place, row.columns)
      yield* group
    } finally {
      for (const place of places) columns.delete(place)
    }
  }
}

/** Visits items whose texts are opened in this order; `placeOf` returns an item's block. */
export function textsAhead<T>(db: Database, items: readonly T[], placeOf: (item: T) => number): Iterable<T> {
  return db.dialect.blocksAhead > 1 && items.length > 1 ? readTextsAhead(db, items, placeOf) : items
}

function* readTextsAhead<T>(db: Database, items: readonly T[], placeOf: (item: T) => number): Generator<T> {
  const { texts } = stashOf(db)
  const sql = 'SELECT place, ids, bodies FROM event_body'
  const blocks = [...new Set(items.map(placeOf))]
  const stashedPlaces = new Set<number>()
  const waiting = groups(blocks, db.dialect.blocksAhead / textsDivisor)
  try {
    for (const item of items) {
      while (!stashedPlaces.has(placeOf(item))) {
        const group = waiting.next().value ?? []
        for (const place of group) stashedPlaces.add(place)
        for (const { place, ...blobs } of readAll<Texts & Block>(db, sql, group)) texts.set(place, blobs)
      }
      yield item
    }
  } finally {
    for (const place of stashedPlaces) texts.delete(place)
  }
}

function stashOf(db: Database): Stash {
  const stash = stashes.get(db) ?? { columns: new Map(), texts: new Map() }
  stashes.set(db, stash)
  return stash
}

function* groups<T>(items: readonly T[], sizeMax: number): Generator<T[]> {
  for (
    let from = 0, size = Math.min(firstGroup, sizeMax);
    from < items.length;
    size = Math.min(sizeMax, size * 4)
  ) {
    yield items.slice(from, from + size)
    from += size
  }
}

/** One block is read when it is opened. */
function readAll<Row>(db: Database, sql: string, places: number[]): Row[] {
  if (places.length < 2) return []
  return db
    .query<Row, [string]>(`${sql} WHERE place IN ${db.dialect.numbersOf('?')}`)
    .all(JSON.stringify(places))
}
