/** A reader of the event engine that runs all slices at once and returns results directly, for tests of the results. */
import type { EventReader } from '../../db/sql/events/engine.ts'
import { atOnce, isSliced, type Sliced } from '../../db/sql/slices.ts'

export type ReaderAtOnce = {
  [K in keyof EventReader]: EventReader[K] extends (...args: infer A) => Sliced<infer T>
    ? (...args: A) => T
    : EventReader[K]
}

export function readAtOnce(reader: EventReader): ReaderAtOnce {
  const calls = Object.entries(reader).map(([name, call]) => {
    const answer = (...args: never[]) => {
      const result = (call as (...args: never[]) => unknown)(...args)
      return isSliced(result) ? atOnce(result) : result
    }
    return [name, answer]
  })
  return Object.fromEntries(calls) as ReaderAtOnce
}
