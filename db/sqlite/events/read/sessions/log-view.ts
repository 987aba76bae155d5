/** What reading sessions needs of one moment of an organization's log. */
import type { Database } from 'bun:sqlite'

export interface LogView {
  db: Database
  org: number
  hashSeed: number
}
