/** A signal sent twice, as by Ctrl-C under npm, stops the appliance like one: orderly, with code 0. */
import { expect, test } from 'bun:test'
import { startAppliance } from '../support/binary.ts'

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} sent repeatedly does not cut the shutdown short`, async () => {
    const appliance = await startAppliance()
    const { pid } = appliance
    process.kill(pid, signal)
    const again = setInterval(() => {
      try {
        process.kill(pid, signal)
      } catch {
        clearInterval(again) // it has ended
      }
    }, 1)
    const { code, stderr } = await appliance.stop()
    clearInterval(again)
    expect(code).toBe(0)
    expect(stderr.trim().split('\n').at(-1)).toContain('"event":"stopped"')
  }, 90_000)
}
