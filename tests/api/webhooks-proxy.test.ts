/** Deliveries through a real proxy process: its requests, the bypassed addresses, and who is blamed for a failure. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { secretBox } from '../../server/system/encryption.ts'
import { addressGuard, resolveWith } from '../../server/webhooks/sinks/addresses.ts'
import { attempt, type AttemptServices } from '../../server/webhooks/delivery/dispatcher.ts'
import { selfSigned } from '../support/certificate.ts'
import { type ProxyProcess, startProxy } from '../support/proxy.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'

const names: { [name: string]: string[] } = {
  'public.test': ['93.184.216.34'],
  'inside.test': ['10.0.0.1'],
  'mixed.test': ['93.184.216.34', '169.254.169.254'],
}
const certificate = selfSigned('hooks.test')
let receiver: Receiver
let https: ReturnType<typeof Bun.serve>
let proxy: ProxyProcess
beforeAll(async () => {
  receiver = await startReceiver()
  https = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: certificate,
    fetch: async (request) => new Response(`${request.headers.get('host')} ${await request.text()}`),
  })
  proxy = await startProxy({
    httpPort: Number(new URL(receiver.url).port),
    httpsPort: https.port!,
    credentials: 'us er:p@ss',
  })
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await https.stop(true)
  await receiver[Symbol.asyncDispose]()
})

const proxyUrl = (credentials: string) => `http://${credentials}@127.0.0.1:${proxy.port}`

function send(url: string, proxyAddress = proxyUrl('us%20er:p%40ss')) {
  const resolver = async (name: string) => {
    const addresses = names[name]
    if (addresses === undefined) throw Object.assign(new Error(name), { code: 'ENOTFOUND' })
    return addresses
  }
  const parts: AttemptServices = {
    clock: { now: () => Date.now() },
    box: secretBox([Buffer.alloc(32)]),
    resolve: resolveWith(resolver, addressGuard([])),
    version: 'test',
    sinkDir: null,
    ca: certificate.cert,
    proxy: proxyAddress,
    timeoutMs: 1_500,
  }
  const delivery = {
    id: 'wh_1',
    orgId: 'org_1',
    endpointId: null,
    url,
    body: '{"n":1}',
    status: 'pending' as const,
    attempts: 0,
    lastError: null,
    lastStatus: null,
    scheduledAtMs: 0,
    nextAttemptAtMs: 0,
    deliveredAtMs: null,
  }
  const claim = {
    isAhead: false,
    retryWaitsMs: null,
    leaseId: 'lea_1',
    lane: 'lane',
    delivery,
    pendingSinceMs: 0,
    encryptedSecrets: [],
  }
  return attempt(parts, { ...claim, probe: false, failingSinceMs: null }, new AbortController().signal)
}

test('http goes to the proxy in absolute form, with the name, the body and our headers', async () => {
  expect(await send('http://public.test/ok/plain')).toMatchObject({ status: 200, failure: null })
  const head = proxy.heads().at(-1)!
  expect(head).toStartWith('POST http://public.test/ok/plain HTTP/1.1\r\n')
  const [received] = receiver.received('/ok/plain')
  expect(received).toMatchObject({ body: '{"n":1}', headers: { host: 'public.test', 'webhook-id': 'wh_1' } })
})

test('a % in the password of the proxy may be written as it is', async () => {
  await using strict = await startProxy({
    httpPort: Number(new URL(receiver.url).port),
    httpsPort: https.port!,
    credentials: 'me:100%',
  })
  for (const password of ['100%25', '100%']) {
    const by = `http://me:${password}@127.0.0.1:${strict.port}`
    expect(await send('http://public.test/ok/percent', by)).toMatchObject({ status: 200, failure: null })
    expect(await send('https://hooks.test/in', by)).toMatchObject({ status: 200, failure: null })
  }
})

test('https is a tunnel: the proxy sees the name, the certificate is the receiver’s', async () => {
  expect(await send('https://hooks.test/in')).toMatchObject({
    status: 200,
    excerpt: 'hooks.test {"n":1}',
    failure: null,
  })
  const head = proxy.heads().at(-1)!
  expect(head).toStartWith('CONNECT hooks.test:443 HTTP/1.1\r\n')
  expect(head).not.toContain('wh_1')
  expect((await send('https://other.test/in')).failure).toMatchObject({
    code: 'certificate_refused',
    isLocal: false,
  })
})

test.each([
  'http://10.0.0.1/',
  'http://[::1]/',
  'http://0xa000001/',
  'https://169.254.169.254/latest/meta-data/',
  'https://inside.test/',
  'http://mixed.test/',
  'http://metadata.google.internal/',
  'http://metadata/',
  'http://printer.local./',
])('%s is refused before the proxy is contacted', async (url) => {
  const countBefore = proxy.heads().length
  expect((await send(url)).failure).toMatchObject({ code: 'url_blocked', isLocal: false })
  expect(proxy.heads()).toHaveLength(countBefore)
})

test('a name that only the proxy can resolve goes to the proxy', async () => {
  expect(await send('http://nobody-here-knows.test/ok/handed')).toMatchObject({ status: 200 })
  expect(receiver.received('/ok/handed')).toHaveLength(1)
})

test('an unreachable proxy and wrong proxy credentials are local failures; a dead receiver is not', async () => {
  const failure = async (url: string, proxyAddress?: string) => {
    const { failure: sendFailure } = await send(url, proxyAddress)
    return sendFailure === null ? null : [sendFailure.code, sendFailure.isLocal]
  }
  for (const scheme of ['http', 'https']) {
    expect(await failure(`${scheme}://public.test/`, 'http://127.0.0.1:1')).toEqual(['proxy_down', true])
    expect(await failure(`${scheme}://public.test/`, 'http://no-such-proxy.invalid:1')).toEqual([
      'proxy_down',
      true,
    ])
    expect(await failure(`${scheme}://public.test/`, proxyUrl('wrong:wrong'))).toEqual([
      'proxy_credentials',
      true,
    ])
    expect(await failure(`${scheme}://hang.test/`)).toEqual(['timeout', false])
    expect(await failure(`${scheme}://closed.test/`)).toEqual(['connection_reset', false])
  }
  expect(await failure('https://refused.test/')).toEqual(['proxy_refused', false])
  expect(await failure('http://refused.test/')).toEqual(['http_502', false])
  expect(await failure('https://cut.test/')).toEqual(['connection_reset', false])
}, 90_000)
