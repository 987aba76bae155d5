/**
 * A node of a newer release waits here until nodes that may not write after its migration have ended. Meanwhile it
 * listens and answers 503, so that a load balancer sends it nothing and a supervisor does not restart it.
 */
import { rmSync } from 'node:fs'
import { StoreError, passesBy } from '../../db/contract/errors.ts'
import { AppError, errorBody } from '../errors.ts'
import { watchCertificate } from '../http/tls.ts'
import { version } from '../system/version.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { ServeConfig } from './make-services.ts'

type Waiting = Pick<ServeConfig, 'listen' | 'tls' | 'basePath' | 'upgradeWaitMs'>

/** A stopping node leaves within milliseconds, a suspended one counts for 15 s. */
const retryMs = 2_000
const sayAgainMs = 30_000

/** A database that starts with this machine, or fails over, is there within this time. */
const databaseWaitMs = 60_000

export interface UpgradeWait {
  /** Resolves when it is time for another try, or throws: another failure, or waited long enough. */
  afterFailure(error: unknown): Promise<void>
  /** Frees the address. */
  end(): Promise<void>
}

export function upgradeWait(config: Waiting, log: Log): UpgradeWait {
  let since = 0
  let saidMs = 0
  let refusing: { stop(): Promise<void> } | null = null

  let awaySinceMs = 0
  /** Bounded, because a wrong address looks the same as a database that starts later than this machine. */
  async function awaitDatabase(error: StoreError): Promise<void> {
    const nowMs = performance.now()
    awaySinceMs ||= nowMs
    if (nowMs - awaySinceMs >= databaseWaitMs) throw error
    refusing ??= refuseRequests(config, waitingForDatabase(error.message), log)
    if (saidMs === 0 || nowMs - saidMs >= sayAgainMs) {
      saidMs = nowMs
      log.warn('waiting_for_database', { message: error.message, limit: `${databaseWaitMs / 1_000} s` })
    }
    await Bun.sleep(retryMs)
  }

  return {
    async afterFailure(error) {
      if (isAway(error)) return awaitDatabase(error)
      if (!(error instanceof StoreError) || error.kind !== 'locked') throw error
      const nowMs = performance.now()
      since ||= nowMs
      if (config.upgradeWaitMs !== null && nowMs - since >= config.upgradeWaitMs)
        throw new AppError('conflict', `The database cannot be migrated: ${error.message}.`, {
          hint: 'end these nodes, then start this one again; --upgrade-wait lets it wait for them',
        })
      refusing ??= refuseRequests(config, waitingToUpgrade(error.message), log)
      if (saidMs === 0 || nowMs - saidMs >= sayAgainMs) {
        saidMs = nowMs
        log.warn('waiting_to_migrate', { message: error.message })
      }
      await Bun.sleep(retryMs)
    },
    async end() {
      await refusing?.stop()
      refusing = null
    },
  }
}

/** What requests get meanwhile. */
interface Waits {
  readiness: string
  message: string
}

function waitingToUpgrade(reason: string): Waits {
  return {
    readiness: `upgrade: ${reason}`,
    message: 'This node waits to upgrade the database. Use another node.',
  }
}

function waitingForDatabase(reason: string): Waits {
  return { readiness: `database: ${reason}`, message: 'This node waits for the database. Use another node.' }
}

/** A refused login or a missing database does not pass by waiting. Their codes are at the end of the message. */
function isAway(error: unknown): error is StoreError {
  return passesBy(error) && !/\((?:28|3D)[0-9A-Z]{3}\)/.test(error.message)
}

function refuseRequests(
  { listen, tls, basePath }: Waiting,
  waits: Waits,
  log: Log,
): { stop(): Promise<void> } {
  const certificate = watchCertificate(tls, log)
  const pair = certificate.pair()
  const fetch = ({ url }: Request): Response => {
    const { pathname } = new URL(url)
    if (pathname === `${basePath}/healthz` || pathname === '/healthz')
      return Response.json({ status: 'ok', version })
    const isCheck = pathname.endsWith('/readyz')
    const message = isCheck ? waits.readiness : waits.message
    const error = new AppError(isCheck ? 'not_ready' : 'unavailable', message)
    const headers = { 'content-type': 'application/json', 'retry-after': '2' }
    return new Response(errorBody(error, newId('req')), { status: 503, headers })
  }
  if (listen.unix !== undefined) rmSync(listen.unix, { force: true })
  const bindAddress =
    listen.unix === undefined ? { hostname: listen.host, port: listen.port } : { unix: listen.unix }
  const server = Bun.serve({
    ...bindAddress,
    ...(pair === null ? {} : { tls: pair }),
    fetch,
  } as Bun.Serve.Options<undefined>)
  return {
    async stop() {
      certificate.stop()
      await server.stop(true)
    },
  }
}
