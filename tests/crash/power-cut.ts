/** Removes the writes from a data folder that a power cut would lose: those that were not synced (`unsynced.c`). */
import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

interface Undo {
  offset: number
  bytes: Uint8Array // the previous bytes
  size: number // of the file before the write
}

/** The kill cut off this record, so its write was not made. */
function undosOf(notes: Buffer): Undo[] {
  const undos: Undo[] = []
  for (let position = 0; position + 24 <= notes.length;) {
    const [offset, length, size] = [0, 8, 16].map((place) => Number(notes.readBigInt64LE(position + place)))
    if (position + 24 + length! > notes.length) break
    undos.push({
      offset: offset!,
      bytes: notes.subarray(position + 24, position + 24 + length!),
      size: size!,
    })
    position += 24 + length!
  }
  return undos
}

/**
 * Undoes the newest unsafe writes of each file. `below` chooses how many of them, but never all, reached the disk.
 * Returns how many were undone.
 */
function cutPower(folder: string, notesFolder: string, randomBelow: (count: number) => number): number {
  let undone = 0
  for (const name of ['sightglass.db', 'sightglass.db-wal']) {
    const notes = join(notesFolder, `${name}.undo`)
    if (!existsSync(notes)) continue
    const undos = undosOf(readFileSync(notes))
    const lost = undos.slice(randomBelow(undos.length)).reverse()
    rmSync(notes)
    if (lost.length === 0 || !existsSync(join(folder, name))) continue
    const file = openSync(join(folder, name), 'r+')
    for (const { offset, bytes, size } of lost) {
      writeSync(file, bytes, 0, bytes.length, offset)
      ftruncateSync(file, size)
    }
    closeSync(file)
    undone += lost.length
  }
  rmSync(join(folder, 'sightglass.db-shm'), { force: true }) // existed in memory only
  return undone
}

/** Makes a round's kill a power cut. `undid` receives the number of undone writes. */
export function powerCut(
  library: string,
  folder: string,
  notesFolder: string,
  randomBelow: (count: number) => number,
  undid: (writes: number) => void = () => {},
) {
  return {
    env: { LD_PRELOAD: library, UNSYNCED: notesFolder },
    afterwards: () => undid(cutPower(folder, notesFolder, randomBelow)),
  }
}
