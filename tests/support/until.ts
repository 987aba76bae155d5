/** Waits for a condition, as long as a busy machine may need. */

/**
 * Throws when the condition was not met in time. The longer it waits, the longer it pauses: asking a server 200 times a
 * second would use a core.
 */
export async function until(holds: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  for (const startMs = performance.now(); !(await holds());) {
    const waitedMs = performance.now() - startMs
    if (waitedMs > timeoutMs) throw new Error('it did not happen in time')
    await Bun.sleep(Math.min(50, 5 + waitedMs / 20))
  }
}
