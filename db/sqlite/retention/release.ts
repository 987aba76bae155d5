/** Gives freed pages back to the disk in small steps, and keeps a few for what arrives next. */
import type { WriteContext } from '../threads/contexts.ts'
import { pageBytes } from '../file/connection.ts'

/** Pages that one step moves: 2 MiB, a few milliseconds. */
const stepPages = 256

/** What is kept free: growing a file again costs more than reusing its pages. */
const keptPages = 1_024

export function releasePages({ db }: WriteContext): { bytes: number; done: boolean } {
  const free = () =>
    db.query<{ n: number }, []>('SELECT freelist_count AS n FROM pragma_freelist_count').get()?.n ?? 0
  const before = free()
  const pages = Math.min(stepPages, before - keptPages)
  if (pages <= 0) return { bytes: 0, done: true }
  db.query(`PRAGMA incremental_vacuum(${pages})`).all()
  const released = before - free()
  return { bytes: released * pageBytes, done: released === 0 || before - released <= keptPages }
}
