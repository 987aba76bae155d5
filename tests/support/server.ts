/** A whole server in this process for API tests: a store in a temporary folder, a clock to move, real HTTP. */
import type { NewNode } from '../../db/contract/nodes.ts'
import type { KeyKind, Org, Role, Store } from '../../db/contract/store.ts'
import { hashPassword } from '../../server/identity/sign-in/password.ts'
import type { Clock } from '../../server/clock.ts'
import { startClockGuard, testTime } from '../../server/system/clock-guard.ts'
import type { ServeConfig } from '../../server/runtime/make-services.ts'
import { newId } from '../../server/ids.ts'
import { mintKey } from '../../server/identity/keys/keys.ts'
import { startLog } from '../../server/log.ts'
import { startServer } from '../../server/runtime/serve.ts'
import { dropDatabaseOf, openTestFolder, testDatabase } from './engine.ts'
import { quickPasswords } from './quick-passwords.ts'
import { tempDir } from './temp-dir.ts'

export interface TestServer extends AsyncDisposable {
  url: string
  ingestUrl: string | null
  dataDir: string
  store: Store
  org: Org
  clock: Clock & { move(byMs: number): void }
  /** Sets the clock as a person or NTP would: unlike `move`, no time passes. */
  jump(byMs: number): void
  /** Mints a key in the default organization and returns its secret. */
  key(
    kind: KeyKind,
    options?: { label?: string; siteIds?: string[]; scopes?: string[]; expiresAtMs?: number },
  ): Promise<string>
  /** Creates an account with this role in the default organization, signs it in, and returns its cookie header. */
  signIn(role: Role): Promise<string>
  /** `fetch` below `url`; with `key` as bearer, an object body as JSON. */
  call(path: string, options?: CallOptions): Promise<Response>
  failed: Promise<void> // settles when the server reported a permanent failure
}

export interface CallOptions {
  method?: string
  key?: string
  body?: unknown
  headers?: Record<string, string>
}

/** Another store than that of a data folder. */
interface OpenedStore {
  open?: (folder: string, clock: Clock) => Promise<Store>
  node?: NewNode // of a store that nodes share
  aheadMs?: number // of this machine's clock, from the start
}

/** Hashes passwords quickly, unless they are what the test is about. */
export async function testServer(
  config: Partial<ServeConfig> = {},
  passwords: 'quick' | 'argon2id' = 'quick',
  { open = openTestFolder, node, aheadMs = 0 }: OpenedStore = {},
): Promise<TestServer> {
  const endQuickPasswords = passwords === 'quick' ? quickPasswords() : () => {}
  const temp = tempDir('api')
  let movedMs = 0
  let jumpedMs = 0
  const source = {
    now: () => Date.now() + aheadMs + movedMs + jumpedMs,
    elapsed: () => performance.now() + movedMs,
  }
  const quiet = { info() {}, warn() {}, error() {} }
  const clockGuard = startClockGuard({ time: testTime(source), dataDir: null, log: quiet })
  const clock = { ...clockGuard.clock, move: (byMs: number) => void (movedMs += byMs) }
  const log = startLog({ level: 'error', clock })
  const opened = await open(temp.path, clock)
  const store = open === openTestFolder ? onClock(opened, clock) : opened
  const failure = Promise.withResolvers<void>()
  const server = await startServer({
    config: {
      ...defaults,
      dataDir: temp.path,
      shared: open === openTestFolder ? await testDatabase(temp.path) : null,
      backup: { ...defaults.backup, dir: `${temp.path}/backups` },
      ...config,
    },
    store,
    clock,
    clockGuard,
    log,
    assets: new Map(),
    ...(node === undefined ? {} : { node }),
    wakesWebhooks: false,
    fail: failure.resolve,
    exhausted: failure.resolve,
  })
  const org = (await store.orgs.find('default'))!
  const call = caller(server.url)
  return {
    url: server.url,
    ingestUrl: server.ingestUrl,
    dataDir: temp.path,
    store,
    org,
    clock,
    jump(byMs) {
      jumpedMs += byMs
      clockGuard.hold()
    },
    failed: failure.promise,
    async key(kind, options = {}) {
      const request = { orgId: org.id, kind, label: 'test', actor: 'cli', ...options }
      return (await mintKey(store, request, clock)).secret
    },
    call,
    async signIn(role) {
      const email = await createAccount(store, org, role)
      const response = await call('/api/sign-in', { body: { email, password } })
      return response.headers.get('set-cookie')!.split(';')[0]!
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
      await store.close()
      await log.close()
      endQuickPasswords()
      temp.remove()
      await dropDatabaseOf(temp.path)
    },
  }
}

/** The clock that a test moves is also that of the database's machine. */
function onClock(store: Store, clock: Clock): Store {
  const heartbeat: Store['nodes']['heartbeat'] = async (command) => {
    const answer = await store.nodes.heartbeat(command)
    return { ...answer, storeMs: clock.now() }
  }
  return { ...store, nodes: { ...store.nodes, heartbeat } }
}

function caller(url: string): TestServer['call'] {
  return (path, { method, key, body, headers = {} } = {}) => {
    const requestHeaders: Record<string, string> = { ...headers }
    if (key !== undefined) requestHeaders['authorization'] = `Bearer ${key}`
    const plain = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream
    if (body !== undefined && !plain) requestHeaders['content-type'] ??= 'application/json'
    const init: BunFetchRequestInit = {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: requestHeaders,
    }
    if (body !== undefined) init.body = plain ? (body as string) : JSON.stringify(body)
    if (!url.startsWith('unix:')) return fetch(url + path, init)
    return fetch(`http://localhost${path}`, { ...init, unix: url.slice('unix:'.length) })
  }
}

const password = 'an open window'

/** Returns the email address of a new account whose password is `password`. */
async function createAccount(store: Store, org: Org, role: Role): Promise<string> {
  const id = newId('usr')
  const email = `${id.slice(4).toLowerCase()}@example.com`
  const passwordHash = await hashPassword(password)
  await store.accounts.create({
    account: { id, email, passwordHash, operator: false, createdAtMs: 0 },
    orgId: org.id,
    role,
    audit: {
      id: newId('aud'),
      orgId: org.id,
      actor: 'cli',
      action: 'account.created',
      target: id,
      metadata: {},
      occurredAtMs: 0,
    },
  })
  return email
}

const defaults: Omit<ServeConfig, 'dataDir'> = {
  commandReference: () => '',
  keyFile: null,
  keyRing: null,
  shared: null,
  role: 'all',
  upgradeWaitMs: null,
  drainMs: 0,
  listen: { host: '127.0.0.1', port: 0 },
  ingestListen: null,
  publicUrl: null,
  basePath: '',
  allowedHosts: [],
  metricsListen: null,
  metricsToken: null,
  trustedProxies: [],
  diskFloorBytes: 0,
  memoryLimitBytes: null,
  rateLimits: { gateway: null, ingest: null },
  tls: null,
  retention: { days: 90, bytes: null, auditDays: null },
  backup: { dir: '', cron: null, keep: 3, passphrase: null },
  webhooks: {
    cron: '* * * * *',
    backoffMs: [60_000, 300_000, 1_800_000],
    allow: [],
    sinkDir: null,
    caFile: null,
    proxy: null,
  },
  oidc: null,
  otlp: { keep: 'agents', content: false },
  evidenceMaxAgeDays: 180,
  evidenceDns: false,
  watches: [],
  syslog: [],
  logLevel: 'error',
  admin: null,
  setupFile: null,
  robots: [],
  openFiles: false,
  reports: { rules: [], mailServer: null },
  warnings: [],
}
