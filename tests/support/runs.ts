/**
 * How many random cases a test tries. An everyday run tries a third, with other seeds every time: each law is checked
 * by every run, and the rare case is found by the runs of some days. `npm test -- --full` tries all.
 */
export const isFull = process.env['SIGHTGLASS_TEST_FULL'] === '1'

/** `full` or a third of it, but not less than ten. */
export function runs(full: number): number {
  return isFull ? full : Math.min(full, Math.max(10, Math.ceil(full / 3)))
}
