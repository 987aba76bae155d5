/** Shared by the program of a deletion round and its oracle. */
import { noon } from '../store/make.ts'

export const batchEvents = 500
export const batchesKept = 40

/** When the first batch of a round arrives. Batches arrive one millisecond apart. */
export function receivedAtMs(round: number): number {
  return noon + round * 1_000_000
}
