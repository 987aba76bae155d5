/** `doctor` checks the options of the running server, and `ready` is the health check of a container. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { binaryPath, cli, startAppliance, type Appliance } from '../support/binary.ts'
import { folderTest } from '../support/engine.ts'
import { selfSigned } from '../support/certificate.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

interface Finding {
  id: string
  status: string
  detail: string
}

async function diagnosis(appliance: Appliance, ...args: string[]): Promise<Map<string, Finding>> {
  const { stdout } = await appliance.cli('doctor', '--json', ...args)
  const { checks } = JSON.parse(stdout) as { checks: Finding[] }
  return new Map(checks.map((check) => [check.id, check]))
}

folderTest('doctor checks the options of the running server, not its own defaults', async () => {
  using dir = tempDir('doctor')
  const backups = dir.join('backups-elsewhere')
  const appliance = await startAppliance({
    dataDir: dir.join('data'),
    args: [
      '--public-url',
      'https://traces.example.com',
      '--trusted-proxy',
      '127.0.0.1,0.0.0.0/0',
      '--backup-dir',
      backups,
      '--backup-cron',
      'off',
      '--retention-days',
      '7',
      '--disk-floor',
      '900TiB',
    ],
  })
  const findings = await diagnosis(appliance)
  expect(findings.get('options')?.detail).toContain(appliance.url)
  expect(findings.get('proxy')).toMatchObject({
    status: 'failure',
    detail: expect.stringContaining('0.0.0.0/0'),
  })
  expect(findings.get('backup')?.detail).toContain(backups)
  expect(findings.get('backup-schedule')?.status).toBe('warning')
  expect(findings.get('retention')?.detail).toContain('7 days')
  expect(findings.get('disk')).toMatchObject({ status: 'failure' })
  // Options of the command line have no effect beside a server.
  const otherFindings = await diagnosis(appliance, '--backup-dir', dir.join('other'))
  expect(otherFindings.get('backup')?.detail).toContain(backups)
  await appliance.stop()
  const alone = await diagnosis(appliance)
  expect(alone.get('options')?.detail).toContain('No server is running')
  expect(alone.get('proxy')?.status).toBe('ok')
  expect(alone.get('retention')?.detail).toContain('90 days')
})

test('the options that the server reports contain no passphrase', async () => {
  using dir = tempDir('doctor')
  const env = { SIGHTGLASS_BACKUP_PASSPHRASE: 'a passphrase nobody may see' }
  await using appliance = await startAppliance({ dataDir: dir.join('data'), env })
  const answer = await fetch('http://localhost/', {
    unix: dir.join('data/control.sock'),
    method: 'POST',
    body: JSON.stringify({ version: appliance.version, verb: 'server state', params: {} }),
  })
  const text = await answer.text()
  expect(text).toContain('"isEncrypted":true')
  expect(text).not.toContain('nobody may see')
})

test('ready exits with 0 while /readyz is ready, and with 1 otherwise or without a server', async () => {
  using dir = tempDir('ready')
  const dataDir = dir.join('data')
  expect((await cli(['ready'], { dataDir })).stderr).toContain('No server runs')
  const well = await startAppliance({ dataDir })
  const readyExit = await well.cli('ready')
  expect([readyExit.code, readyExit.stdout]).toEqual([0, 'ready\n'])
  await well.stop()
  expect((await cli(['ready'], { dataDir })).code).toBe(1)
  const full = await startAppliance({ dataDir, args: ['--disk-floor', '900TiB'] })
  expect((await fetch(`${full.url}/readyz`)).status).toBe(503)
  const refused = await full.cli('ready', '--json')
  expect([refused.code, JSON.parse(refused.stderr)]).toMatchObject([1, { error: 'not_ready' }])
  expect(refused.stderr).toContain('disk')
  await full.kill()
  expect((await cli(['ready'], { dataDir })).stderr).toContain('No server runs')
})

test('ready works over TLS, below a base path and over a socket', async () => {
  using dir = tempDir('ready')
  const dataDir = dir.join('data')
  const { key, cert } = selfSigned('traces.example.com')
  writeFileSync(dir.join('key.pem'), key)
  writeFileSync(dir.join('cert.pem'), cert)
  const tls = ['--tls-cert', dir.join('cert.pem'), '--tls-key', dir.join('key.pem'), '--base-path', '/below']
  const secure = await startAppliance({ dataDir, args: tls })
  expect((await secure.cli('ready')).stdout).toBe('ready\n')
  expect((await diagnosis(secure)).get('tls')?.detail).toContain('uses TLS')
  await secure.stop()
  const args = ['serve', '--listen', `unix:${dir.join('http.sock')}`, '--data-dir', dataDir]
  const behind = run([binaryPath, ...args], {
    cwd: dir.path,
    env: { PATH: process.env.PATH ?? '', TZ: 'UTC' },
  })
  await behind.line((text) => (text.includes('listening on unix:') ? text : null), 20_000)
  expect((await cli(['ready'], { dataDir })).stdout).toBe('ready\n')
  behind.signal('SIGTERM')
  expect(await behind.exited).toBe(0)
})
