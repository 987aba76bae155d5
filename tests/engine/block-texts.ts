/** Inflates the blobs of a database's blocks and path columns, to search them for erased data. */
import type { SqliteDatabase } from '../../db/sqlite/file/connection.ts'
import { frameCount, inflateFrame } from '../../db/sql/events/blocks/texts.ts'

/** One text per frame, of bodies, ids and sessions of all blocks, and one per path column. */
export function blockTexts(db: SqliteDatabase): string[] {
  const rows = db
    .query<{ ids: Uint8Array; bodies: Uint8Array }, []>('SELECT ids, bodies FROM event_body')
    .all()
  const texts = (blob: Uint8Array, numbers: typeof Uint16Array | typeof Uint32Array): string[] =>
    Array.from({ length: frameCount(blob, numbers) }, (_, frame) =>
      inflateFrame(blob, frame, numbers).toString('utf8'),
    )
  const columns = db.query<{ packed: Uint8Array<ArrayBuffer> }, []>(
    "SELECT packed FROM event_path WHERE path <> ''",
  )
  return [
    ...rows.flatMap(({ ids, bodies }) => [...texts(bodies, Uint32Array), ...texts(ids, Uint16Array)]),
    ...columns.all().map(({ packed }) => Bun.zstdDecompressSync(packed).toString('utf8')),
  ]
}
