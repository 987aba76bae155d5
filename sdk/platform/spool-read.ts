/** Reads what an earlier run left in a spool. */
import { readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { basename, dirname } from 'node:path'

export interface Segment {
  number: number
  bytes: number // of its whole lines
}

export interface SpoolContents {
  events: string[] // not yet done, oldest first
  segments: Segment[] // that hold them
  offset: number // bytes of the oldest segment that are done
  lastNumber: number // highest segment number ever seen here
}

export function segmentPath(path: string, number: number): string {
  return `${path}.${String(number).padStart(6, '0')}`
}

/** Segments that are done altogether are deleted on the way. */
export function readSpool(path: string): SpoolContents {
  const done = readDone(path)
  const contents: SpoolContents = { events: [], segments: [], offset: 0, lastNumber: done.number }
  for (const number of segmentNumbers(path)) {
    contents.lastNumber = Math.max(contents.lastNumber, number)
    const bytes = readFileSync(segmentPath(path, number))
    const end = bytes.lastIndexOf(10) + 1 // a last line without its end was cut by a crash
    const start = number < done.number ? end : number === done.number ? Math.min(done.offset, end) : 0
    if (start >= end) {
      unlinkSync(segmentPath(path, number))
      continue
    }
    if (contents.segments.length === 0) contents.offset = start
    contents.segments.push({ number, bytes: end })
    for (const line of bytes.toString('utf8', start, end - 1).split('\n')) contents.events.push(line)
  }
  return contents
}

function readDone(path: string): { number: number; offset: number } {
  try {
    const [number, offset] = readFileSync(`${path}.done`, 'utf8').trim().split(' ').map(Number)
    if (Number.isInteger(number) && Number.isInteger(offset))
      return { number: number ?? 0, offset: offset ?? 0 }
  } catch {
    // No such file yet: nothing is done.
  }
  return { number: 0, offset: 0 }
}

function segmentNumbers(path: string): number[] {
  const prefix = `${basename(path)}.`
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^\d{6,}$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((left, right) => left - right)
}
