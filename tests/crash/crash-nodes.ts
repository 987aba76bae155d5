/** Starts the appliance, or several nodes of it on one PostgreSQL, again and again on the same data. */
import { testRing } from '../support/engine.ts'
import { startAppliance, type Appliance, type ApplianceOptions } from '../support/binary.ts'
import { startPostgres } from '../support/postgres.ts'
import type { TempDir } from '../support/temp-dir.ts'

export interface CrashNodes extends AsyncDisposable {
  /** All of them, at once. */
  start(): Promise<Appliance[]>
  startOne(index: number): Promise<Appliance>
}

export async function crashNodes(
  count: number,
  temp: TempDir,
  { env = {}, args = [] }: Pick<ApplianceOptions, 'env' | 'args'>,
): Promise<CrashNodes> {
  const cluster = count === 1 ? null : await startPostgres()
  const shared = cluster && { SIGHTGLASS_DATABASE: cluster.url, SIGHTGLASS_KEY_RING: testRing }
  const startOne = (index: number) =>
    startAppliance({
      dataDir: temp.join(`data-${index}`),
      env: { ...env, ...shared },
      args: [...args, ...(shared === null ? [] : ['--node-name', `node-${index}`])],
    })
  return {
    start: () => Promise.all(Array.from({ length: count }, (_, index) => startOne(index))),
    startOne,
    async [Symbol.asyncDispose]() {
      await cluster?.stop()
    },
  }
}
