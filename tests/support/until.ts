/** Waiting for what happens on its own, as long as a busy machine may take for it. */

/** Throws when it did not happen in time. */
export async function until(holds: () => boolean, timeoutMs = 20_000): Promise<void> {
  for (const endMs = performance.now() + timeoutMs; !holds();) {
    if (performance.now() > endMs) throw new Error('it did not happen in time')
    await Bun.sleep(5)
  }
}
