/** Runs the server in this process: opens the data folder, listens, and stops without losing acknowledged events. */
import { prepareFirstOwner } from '../identity/people/first-owner.ts'
import { systemClock } from '../clock.ts'
import { startClockGuard, systemTime } from '../system/clock-guard.ts'
import type { ServeConfig } from './serve-config.ts'
import { startControl } from './control-socket.ts'
import { memoryAllowed, requireMemory } from '../operations/health/memory.ts'
import { startLog } from '../log.ts'
import { setUpAtStart } from '../operations/setup/apply.ts'
import { readSetupFile } from '../operations/setup/file.ts'
import { startServer } from './server.ts'
import { version } from '../system/version.ts'
import { openDataFolder } from './open-data-folder.ts'
import type { WorkTable } from './work.ts'

/** Runs the server until SIGTERM or SIGINT and returns the exit code. Rejects when it cannot start. */
export async function serve(config: ServeConfig, work: WorkTable): Promise<number> {
  const log = startLog({ level: config.logLevel, clock: systemClock })
  // Before the folder is opened: without its own file the guard uses the folder's newest write.
  const clockGuard = startClockGuard({ time: systemTime(), dataDir: config.dataDir, log })
  const { clock } = clockGuard
  const setup = config.setupFile === null ? null : readSetupFile(config.setupFile)
  let reload: () => void = () => undefined
  let failed: () => boolean = () => false
  // Before the folder is opened: SIGHUP during an upgrade must not end the process.
  process.on('SIGHUP', () => {
    const logReopened = log.reopen()
    log.info('reloaded', { logReopened })
    reload()
  })
  const store = await openDataFolder(config.dataDir, clock, config.backup)
  clockGuard.run()
  const ended = Promise.withResolvers<number>()
  // Not `once`: npm and `timeout` send the signal twice, and the second would interrupt the shutdown.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => ended.resolve(0))
  try {
    for (const warning of config.warnings) log.warn('configuration', { warning })
    const setupToken = await prepareFirstOwner({ store, admin: config.admin, clock, log })
    if (setup !== null) await setUpAtStart({ config, store, clock, log }, setup)
    requireMemory(config.memoryLimitBytes ?? memoryAllowed(), config.memoryLimitBytes !== null)
    const server = await startServer({
      config,
      store,
      clock,
      clockGuard,
      log,
      fail: () => ended.resolve(1),
      exhausted: () => ended.resolve(0),
    })
    reload = server.reload
    failed = server.failed
    const { publicUrl, basePath } = config
    const baseUrl = publicUrl === null ? server.link : `${publicUrl}${basePath}`
    const running = {
      ingestUrl: server.ingestLink,
      log,
      backups: config.backup,
      clockGuard,
      state: server.state,
    }
    const context = { store, clock, baseUrl, webhooks: () => server.webhooks, server: running }
    const control = await startControl({ dataDir: config.dataDir, log, work, context })
    // A contract: people and scripts wait for these lines, in this order.
    const lines = [`sightglass ${version} listening on ${server.url}`]
    if (server.ingestUrl) lines.push(`ingest listening on ${server.ingestUrl}`)
    if (setupToken) lines.push(`set up the first owner: ${baseUrl}/setup#${setupToken}`)
    process.stdout.write(`${lines.join('\n')}\n`)
    const signalled = await ended.promise
    const code = failed() ? 1 : signalled
    log.info('stopping', { code })
    await control.stop()
    await server.stop()
    log.info('stopped')
    return code
  } finally {
    clockGuard.stop(!failed())
    await store.close()
    await log.close()
  }
}
