/** Waits for a condition, as long as a busy machine may need. */

/**
 * Throws when the condition was not met in time. The longer it waits, and the longer the answer takes, the longer it
 * pauses: asking a server 200 times a second would use a core, and so would running a command again and again.
 */
export async function until(holds: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const startMs = performance.now()
  for (;;) {
    const askedMs = performance.now()
    if (await holds()) return
    const nowMs = performance.now()
    if (nowMs - startMs > timeoutMs) throw new Error('it did not happen in time')
    const pauseMs = Math.min(50, 5 + (nowMs - startMs) / 20)
    await Bun.sleep(Math.max(pauseMs, Math.min(250, nowMs - askedMs)))
  }
}
