/** A machine without a network blames itself: no receiver's retry is used up while our own link is down. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'

const script = join(import.meta.dir, '../support/attempt-once.ts')
const bare = ['unshare', '--user', '--map-root-user', '--net']
// Network namespaces are Linux's, and some sandboxes forbid them.
const canBeOffline = Bun.which('unshare') !== null && Bun.spawnSync([...bare, 'true']).exitCode === 0

test.if(canBeOffline)('addresses, names and syslog receivers out of reach are faults of ours', () => {
  const urls = [
    'http://93.184.216.34/',
    'https://[2606:4700::1111]/',
    'http://receiver.example/',
    'syslog+udp://93.184.216.34',
    'syslog+tcp://93.184.216.34',
  ]
  const { stdout } = Bun.spawnSync([...bare, process.execPath, script, ...urls])
  const faults = stdout
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { code: string; ours: boolean })
  expect(faults.map(({ code, ours }) => [code, ours])).toEqual([
    ['network_down', true],
    ['network_down', true],
    ['resolver_down', true],
    ['network_down', true],
    ['network_down', true],
  ])
})

test.if(canBeOffline)('forbidden addresses are refused before anything is dialled', () => {
  const urls = ['http://127.0.0.1/', 'http://169.254.169.254/', 'http://localhost/', 'syslog+tcp://10.0.0.1']
  const { stdout } = Bun.spawnSync([...bare, process.execPath, script, ...urls])
  const codes = stdout
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { code: string }).code)
  expect(codes).toEqual(urls.map(() => 'url_blocked'))
})
