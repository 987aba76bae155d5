/**
 * The networks of contradicted requests, by day of arrival, in a table of their own: they are deleted after some months
 * while the events stay (contract §17), so they are in neither the text nor the columns of an event.
 */
import { networkMatchesMax } from '../../../contract/event-fields.ts'
import type { Database } from '../../database.ts'

/** The network of a contradicted request. */
export interface NetworkRow {
  seq: number
  day: number // of its arrival, days since 1970
  network: string
}

/** Inside the transaction that stores the events. */
export function writeNetworks(db: Database, org: number, rows: readonly NetworkRow[]): void {
  if (rows.length === 0) return
  db.runEach(
    'INSERT INTO event_network (org, seq, day, network) VALUES (?, ?, ?, ?)',
    rows.map(({ seq, day, network }) => [org, seq, day, network]),
  )
}

/** The network of an event; null when none is stored. */
export function networkOf(db: Database, org: number, seq: number): string | null {
  const row = db
    .query<{ network: string }, [number, number]>(
      'SELECT network FROM event_network WHERE org = ? AND seq = ?',
    )
    .get(org, seq)
  return row?.network ?? null
}

/** The arrival numbers of the newest events of some networks, ascending. */
export function arrivalsOfNetworks(db: Database, org: number, networks: readonly string[]): Float64Array {
  const newest = db.query<{ seq: number }, [number, string]>(
    `SELECT seq FROM event_network WHERE org = ? AND network = ? ORDER BY seq DESC LIMIT ${networkMatchesMax}`,
  )
  const arrivals = networks.flatMap((network) => newest.all(org, network).map(({ seq }) => seq))
  return Float64Array.from(arrivals).sort().slice(-networkMatchesMax)
}

/** Inside the transaction that erases the events. */
export function deleteNetworksOf(db: Database, org: number, seqs: readonly number[]): void {
  db.runEach(
    'DELETE FROM event_network WHERE org = ? AND seq = ?',
    seqs.map((seq) => [org, seq]),
  )
}

/** Inside the transaction that expires the events before an arrival. */
export function dropNetworksBefore(db: Database, org: number, firstKept: number): void {
  db.query('DELETE FROM event_network WHERE org = ? AND seq < ?').run(org, firstKept)
}

/** Rows per step: some 20 ms. */
const rowsPerStep = 4_096

/** Inside a transaction: deletes a bounded number of networks of days before one. */
export function expireNetworks(db: Database, beforeDay: number): { rows: number; done: boolean } {
  const rows = db
    .query(
      `DELETE FROM event_network WHERE (org, seq) IN
         (SELECT org, seq FROM event_network WHERE day < ? ORDER BY day LIMIT ${rowsPerStep})`,
    )
    .run(beforeDay).changes
  return { rows, done: rows < rowsPerStep }
}
