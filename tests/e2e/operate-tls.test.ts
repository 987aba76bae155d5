/** TLS with PEM files: all is HTTPS, a renewed certificate is loaded beside open streams, a broken one is not. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(40_000)

let dir: TempDir
beforeAll(async () => {
  dir = tempDir('tls')
  for (const name of ['first', 'second']) await selfSigned(name)
  use('first')
})
afterAll(() => dir.remove())

async function selfSigned(name: string): Promise<void> {
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    dir.join(`${name}.key`),
  ]
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '30']
  const child = Bun.spawn(['openssl', 'req', '-x509', ...key, '-out', dir.join(`${name}.pem`), ...subject], {
    stdout: 'ignore',
    stderr: 'ignore',
  })
  expect(await child.exited).toBe(0)
}

function use(name: string, keyName = name): void {
  copyFileSync(dir.join(`${name}.pem`), dir.join('cert.pem'))
  copyFileSync(dir.join(`${keyName}.key`), dir.join('key.pem'))
}

const flags = () => ['--tls-cert', dir.join('cert.pem'), '--tls-key', dir.join('key.pem')]
const trusting = { tls: { rejectUnauthorized: false } }

/** The name in the certificate that a new connection is shown; rejects when there is no connection. */
function shownBy(appliance: Appliance): Promise<string> {
  const port = Number(new URL(appliance.url).port)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.end()
    })
    socket.on('error', reject)
  })
}

async function hangUp(appliance: Appliance, until: () => Promise<boolean>): Promise<void> {
  process.kill(appliance.pid, 'SIGHUP')
  for (const deadlineMs = performance.now() + 10_000; !(await until()); await Bun.sleep(20))
    if (performance.now() > deadlineMs) throw new Error(`nothing came of it\n${appliance.stderr()}`)
}

test('both listeners use https with a secure cookie and refuse plain http', async () => {
  await using appliance = await startAppliance({
    args: [...flags(), '--ingest-listen=127.0.0.1:0'],
    dataDir: dir.join('a'),
  })
  expect(appliance.url).toStartWith('https://127.0.0.1:')
  expect(appliance.ingestUrl).toStartWith('https://127.0.0.1:')
  const answer = await fetch(`${appliance.url}/healthz`, trusting)
  expect([answer.status, answer.headers.get('strict-transport-security')]).toEqual([200, 'max-age=31536000'])
  const token = (await appliance.setupLink()).split('#')[1]
  const body = JSON.stringify({ token, email: 'ann@example.com', password: 'a window in a vessel' })
  const headers = { 'content-type': 'application/json' }
  const owner = await fetch(`${appliance.url}/api/setup`, { ...trusting, method: 'POST', headers, body })
  expect(owner.headers.get('set-cookie')).toMatch(/^__Host-.*Secure/)
  const plain = await fetch(appliance.url.replace('https', 'http'), {
    signal: AbortSignal.timeout(2_000),
  }).then(
    ({ status }) => status,
    () => 'refused',
  )
  expect(plain).toBe('refused')
  expect((await appliance.cli('doctor', '--json', ...flags())).stdout).toContain('uses TLS')
})

test('a renewed certificate serves new connections while open streams continue; a broken one changes nothing', async () => {
  use('first')
  const env = { SIGHTGLASS_ADMIN_EMAIL: 'ann@example.com', SIGHTGLASS_ADMIN_PASSWORD: 'a window in a vessel' }
  await using appliance = await startAppliance({ args: flags(), env, dataDir: dir.join('b') })
  expect(await shownBy(appliance)).toBe('first')
  const stream = await openStream(appliance)
  use('second')
  // During the change, about a millisecond, a connection is refused or reset, so this retries as senders do.
  await hangUp(
    appliance,
    async () =>
      (await shownBy(appliance).catch(() => 'none')) === 'second' &&
      appliance.stderr().includes('certificate_renewed'),
  )
  const key = JSON.parse(
    (await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')).stdout,
  ).key
  const event = {
    id: 'after',
    siteId: 's',
    sessionId: 's',
    occurredAt: new Date().toISOString(),
    type: 'agent.detected',
    outcome: 'success',
  }
  const posted = await fetch(`${appliance.url}/v1/sdk/events`, {
    ...trusting,
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [event] }),
  })
  expect(posted.status).toBe(202)
  expect(await stream.until('"after"')).toBe(true) // over the connection from before the renewal
  use('first', 'second')
  await hangUp(appliance, async () => appliance.stderr().includes('certificate_not_renewed'))
  expect(appliance.stderr()).toMatch(/does not match the certificate/)
  expect(await shownBy(appliance)).toBe('second')
  await stream.end()
  expect((await appliance.stop()).code).toBe(0)
})

async function openStream(appliance: Appliance) {
  const sign = await fetch(`${appliance.url}/api/sign-in`, {
    ...trusting,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ann@example.com', password: 'a window in a vessel' }),
  })
  const cookie = sign.headers.get('set-cookie')!.split(';')[0]!
  const answer = await fetch(`${appliance.url}/api/live`, { ...trusting, headers: { cookie } })
  expect(answer.status).toBe(200)
  const reader = answer.body!.getReader()
  return {
    async until(part: string): Promise<boolean> {
      let text = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return false
        text += new TextDecoder().decode(value)
        if (text.includes(part)) return true
      }
    },
    end: () => reader.cancel(),
  }
}

test('a certificate and key that do not match are refused at start in one line', async () => {
  const start = (...args: string[]) =>
    cli(['serve', '--listen', '127.0.0.1:0', ...args], { dataDir: dir.join('c') })
  const cases: [string[], number, RegExp][] = [
    [['--tls-cert', dir.join('first.pem')], 2, /set together/],
    [['--tls-cert', dir.join('absent.pem'), '--tls-key', dir.join('first.key')], 1, /cannot be read/],
    [['--tls-cert', dir.join('first.key'), '--tls-key', dir.join('first.key')], 1, /no PEM certificate/],
    [
      ['--tls-cert', dir.join('first.pem'), '--tls-key', dir.join('first.pem')],
      1,
      /no unencrypted PEM private key/,
    ],
    [['--tls-cert', dir.join('first.pem'), '--tls-key', dir.join('second.key')], 1, /does not match/],
  ]
  for (const [args, code, saying] of cases) {
    const ended = await start(...args)
    expect([args, ended.code, ended.stderr]).toEqual([args, code, expect.stringMatching(saying)])
    const messages = ended.stderr.split('\n').filter((line) => !line.startsWith('{')) // its log
    expect(messages.length).toBe(2)
  }
})
