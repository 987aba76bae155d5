/** Inflates the blobs of a database's blocks and path columns, to search them for erased data. */
import type { SqliteDatabase } from '../../db/sqlite/file/connection.ts'
import { bodiesBetween } from '../../db/sql/events/blocks/body-table.ts'
import { frameCount, inflateFrame, openBodies } from '../../db/sql/events/blocks/texts.ts'
import { columnsMark } from '../../db/sql/events/blocks/text-columns.ts'

interface Row {
  events: number
  ids: Uint8Array
  bodies: Uint8Array
}

/** One text per frame, of bodies, ids and sessions of all blocks, and one per path column. */
export function blockTexts(db: SqliteDatabase): string[] {
  const events = db.query<{ events: number }, [number]>('SELECT events FROM event_block WHERE place = ?')
  const rows = bodiesBetween(db, 0, Number.MAX_SAFE_INTEGER).map(({ place, ids, bodies }): Row => {
    return { events: events.get(place)?.events ?? 0, ids, bodies }
  })
  const texts = (blob: Uint8Array, numbers: typeof Uint16Array | typeof Uint32Array): string[] =>
    Array.from({ length: frameCount(blob, numbers) }, (_, frame) =>
      inflateFrame(blob, frame, numbers).toString('utf8'),
    )
  const columns = db.query<{ packed: Uint8Array<ArrayBuffer> }, []>(
    "SELECT packed FROM event_path WHERE path <> ''",
  )
  return [
    ...rows.flatMap((row) => [...bodiesOf(row, texts), ...texts(row.ids, Uint16Array)]),
    ...columns.all().map(({ packed }) => Bun.zstdDecompressSync(packed).toString('utf8')),
  ]
}

/** Of columns both the texts and all that is stored. */
function bodiesOf(
  { events, bodies }: Row,
  texts: (blob: Uint8Array, numbers: typeof Uint32Array) => string[],
): string[] {
  if (bodies[0] !== columnsMark) return texts(bodies, Uint32Array)
  const opened = openBodies(bodies, events)
  const joinedTexts = Array.from({ length: events }, (_, row) => opened.text(row)).join('\0')
  return [joinedTexts, Bun.zstdDecompressSync(bodies.subarray(1) as Uint8Array<ArrayBuffer>).toString('utf8')]
}
