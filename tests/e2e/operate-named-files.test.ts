/** Files that an operator names: what is no file is refused at once, and a share that hangs stops nothing else. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { binaryPath, cleanEnv, cli, startAppliance } from '../support/binary.ts'
import { selfSigned } from '../support/certificate.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)
const temp = tempDir('named-files')
const dataDir = temp.join('data')
let backup = ''

beforeAll(async () => {
  await (await startAppliance({ dataDir })).stop()
  const made = await cli(['backup', 'create', '--json'], { dataDir })
  backup = (JSON.parse(made.stdout) as { path: string }).path
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

for (const [place, command] of Object.entries(places))
  test(`${place} refuses a pipe, a folder and a device`, async () => {
    for (const [name, kind] of Object.entries(kinds)) {
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
