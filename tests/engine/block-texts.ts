/** Inflates the blobs of a database's blocks, to search them for erased data. */
import type { Database } from 'bun:sqlite'
import { frameCount, inflateFrame } from '../../db/sqlite/events/blocks/texts.ts'

/** One text per frame, of bodies, ids and sessions of all blocks. */
export function blockTexts(db: Database): string[] {
  const rows = db
    .query<{ ids: Uint8Array; bodies: Uint8Array }, []>('SELECT ids, bodies FROM event_body')
    .all()
  const texts = (blob: Uint8Array, numbers: typeof Uint16Array | typeof Uint32Array): string[] =>
    Array.from({ length: frameCount(blob, numbers) }, (_, frame) =>
      inflateFrame(blob, frame, numbers).toString('utf8'),
    )
  return rows.flatMap(({ ids, bodies }) => [...texts(bodies, Uint32Array), ...texts(ids, Uint16Array)])
}
