/** Since when judges of verdicts are recorded. Counts of verdicts are not compared across that time (contract §17). */
import type { Store } from '../../db/contract/store.ts'

type HealthStore = Pick<Store, 'health'>

/** It changes only with the schema, which a running process does not change. */
const times = new WeakMap<HealthStore['health'], Promise<number | null>>()

/** Null: from the first event on. */
export function judgedSince({ health }: HealthStore): Promise<number | null> {
  const cached = times.get(health)
  if (cached !== undefined) return cached
  const reading = health().then(({ judgedSinceMs }) => judgedSinceMs)
  times.set(health, reading)
  reading.catch(() => times.delete(health))
  return reading
}
