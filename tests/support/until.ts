/** Waits for a condition, as long as a busy machine may need. */

/** Throws when the condition was not met in time. */
export async function until(holds: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  for (const endMs = performance.now() + timeoutMs; !(await holds());) {
    if (performance.now() > endMs) throw new Error('it did not happen in time')
    await Bun.sleep(5)
  }
}
