/** Files that an operator names: what is no file is refused at once, and a share that hangs stops nothing else. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { binaryPath, cleanEnv, cli, startAppliance } from '../support/binary.ts'
import { selfSigned } from '../support/certificate.ts'
import { hangFolder, whyNoHangingFolder } from '../support/hanging-folder.ts'
import { run } from '../support/process.ts'
import { isFull } from '../support/runs.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)
const temp = tempDir('named-files')
const dataDir = temp.join('data')
let backup = ''

beforeAll(async () => {
  await (await startAppliance({ dataDir })).stop()
  const backupExit = await cli(['backup', 'create', '--json'], { dataDir })
  backup = (JSON.parse(backupExit.stdout) as { path: string }).path
  expect(Bun.spawnSync(['mkfifo', temp.join('pipe')]).exitCode).toBe(0)
  mkdirSync(temp.join('folder'))
  symlinkSync('/dev/zero', temp.join('zero'))
  const { cert, key } = selfSigned('localhost')
  writeFileSync(temp.join('cert.pem'), cert)
  writeFileSync(temp.join('key.pem'), key)
})
afterAll(() => temp.remove())

/** A node of a shared database has a data folder of its own. */
const nodePlace = 'the certificate of PostgreSQL'

const serve = ['serve', '--listen', '127.0.0.1:0']

/** Each place where the executable reads a file that somebody names. */
const places: { [place: string]: (path: string) => { args: string[]; env?: Record<string, string> } } = {
  '--config': (path) => ({ args: [...serve, '--config', path] }),
  '--key-file of the server': (path) => ({ args: [...serve, '--key-file', path] }),
  '--tls-cert': (path) => ({ args: [...serve, '--tls-cert', path, '--tls-key', temp.join('key.pem')] }),
  '--tls-key': (path) => ({ args: [...serve, '--tls-cert', temp.join('cert.pem'), '--tls-key', path] }),
  '--webhook-ca': (path) => ({ args: [...serve, '--webhook-ca', path] }),
  '--setup-file': (path) => ({ args: [...serve, '--setup-file', path] }),
  'a secret of the environment': (path) => ({ args: serve, env: { SIGHTGLASS_METRICS_TOKEN_FILE: path } }),
  'setup FILE': (path) => ({ args: ['setup', path] }),
  'evidence update': (path) => ({ args: ['evidence', 'update', path] }),
  'site policy set --robots': (path) => ({
    args: ['site', 'policy', 'set', '--site', 'shop', '--robots', path],
  }),
  'backup verify': (path) => ({ args: ['backup', 'verify', path] }),
  restore: (path) => ({ args: ['restore', path, '--yes'] }),
  'restore --key-file': (path) => ({ args: ['restore', backup, '--dry-run', '--key-file', path] }),
  upgrade: (path) => ({ args: ['upgrade', path] }),
  'watch --key-file': (path) => ({
    args: ['watch', temp.join('a.log'), '--site', 'shop', '--to', 'http://127.0.0.1:9', '--key-file', path],
  }),
  [nodePlace]: (path) => ({
    args: [
      ...serve,
      '--data-dir',
      temp.join('node'),
      '--database',
      `postgres://127.0.0.1:9/x?sslmode=verify-full&sslrootcert=${path}`,
    ],
    env: { SIGHTGLASS_KEY_RING: '11'.repeat(32) },
  }),
}

const kinds = { pipe: 'a named pipe', folder: 'a folder', zero: 'a device' }

/**
 * An everyday run tries the pipe everywhere, because a place that opens files in another way waits for it, and all
 * kinds in the first place. db/rules/regular-files.test.ts tries all kinds with the functions that open files.
 */
function kindsAt(place: string): [name: string, kind: string][] {
  const isFirst = place === Object.keys(places)[0]
  return Object.entries(kinds).filter(([name]) => isFull || isFirst || name === 'pipe')
}

for (const [place, command] of Object.entries(places))
  test(`${place} refuses what is no file`, async () => {
    for (const [name, kind] of kindsAt(place)) {
      const { args, env = {} } = command(temp.join(name))
      // Code 137: it waited and was killed.
      const { code, stdout, stderr } = await cli(args, {
        ...(place === nodePlace ? {} : { dataDir }),
        env,
        timeoutMs: 15_000,
      })
      const text = `${stdout}${stderr}`
      expect([place, name, code === 137 ? 'it hung' : text]).toEqual([
        place,
        name,
        expect.stringContaining(`${kind}, not a file`),
      ])
      expect(code === 0).toBe(false)
    }
  })

test('a secret that the shell pipes in is still read', async () => {
  const script = `SIGHTGLASS_METRICS_TOKEN_FILE=<(echo a-token) exec "$0" config --json --data-dir "$1"`
  const child = run(['bash', '-c', script, binaryPath, dataDir], { cwd: temp.path, env: cleanEnv() })
  expect([await child.exited, child.stderr()]).toEqual([0, ''])
})

const noHang = whyNoHangingFolder()
if (noHang !== null) console.warn(`tests of shares that hang are left out: ${noHang}`)

const gptBot =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.1; +https://openai.com/gptbot)'
const logLine = (path: string) =>
  `20.171.206.1 - - [20/Nov/2026:10:00:00 +0000] "GET ${path} HTTP/1.1" 200 5 "-" "${gptBot}"\n`

test.if(noHang === null)(
  'shares that hang stop neither the other files, nor requests, nor SIGTERM',
  async () => {
    const names = ['logs', 'www', 'reports', 'sink'] as const
    const hung = (name: (typeof names)[number], ...pathParts: string[]) =>
      temp.join(`hung-${name}`, ...pathParts)
    for (const name of names) mkdirSync(hung(name))
    writeFileSync(hung('logs', 'access.log'), logLine('/before'))
    writeFileSync(hung('www', 'robots.txt'), 'User-agent: *\nDisallow: /a\n')
    mkdirSync(temp.join('local'))
    const log = temp.join('local', 'access.log')
    const robots = temp.join('local', 'robots.txt')
    writeFileSync(log, logLine('/first'))
    writeFileSync(robots, 'User-agent: *\nDisallow: /b\n')
    const config = temp.join('hang.toml')
    const report = `[[report]]\nevery = "day"\nfolder = "${hung('reports', 'daily')}"\n`
    writeFileSync(config, report)
    const appliance = await startAppliance({
      args: [
        '--config',
        config,
        '--sink-dir',
        hung('sink'),
        '--watch',
        `gone=${hung('logs', 'access.log')},shop=${log}`,
        '--robots',
        `gone=${hung('www', 'robots.txt')},shop=${robots}`,
      ],
    })
    const logged = (text: string) => until(() => appliance.stderr().includes(text), 60_000)
    await logged('"event":"robots_version","siteId":"shop"')
    const ends = [await hangFolder(hung('logs')), await hangFolder(hung('reports'))]
    try {
      await logged('its file system hangs')
      appendFileSync(log, logLine('/while-it-hangs'))
      const isStored = async () => {
        const { stdout } = await appliance.cli('export', 'traces')
        return stdout.includes('/while-it-hangs')
      }
      await until(isStored, 60_000)
      for (let request = 0; request < 20; request++)
        expect((await fetch(`${appliance.url}/healthz`)).status).toBe(200)
      // SIGKILL after 30 s shows as code 137.
      expect((await appliance.stop()).code).toBe(0)
    } finally {
      for (const end of ends) await end()
    }
  },
)
