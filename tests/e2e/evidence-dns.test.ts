/** Forward-confirmed DNS on the executable, in a network of its own whose only DNS server is the test's. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { cli } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

test('with --evidence-dns names prove and disprove agents; without it nobody is asked', async () => {
  expect((await cli(['version'])).code).toBe(0) // builds the executable while there is a network
  using temp = tempDir('resolver')
  writeFileSync(temp.join('resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n')
  const script = `ip link set lo up && mount --bind '${temp.join('resolv.conf')}' /etc/resolv.conf && exec "$@"`
  const inside = [process.execPath, join(import.meta.dir, 'evidence-dns-inside.ts')]
  const child = Bun.spawn(
    ['unshare', '--map-root-user', '--net', '--mount', 'sh', '-c', script, 'sh', ...inside],
    {
      env: { ...process.env, SIGHTGLASS_TEST_BINARY: 'built' },
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  const [code, said, wrong] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  expect([code, wrong]).toEqual([0, expect.any(String)])
  expect(JSON.parse(said.trim().split('\n').at(-1) ?? '')).toEqual({
    codes: [0, 0],
    askedWithout: 0,
    verdicts: ['/198.51.100.10 verified', '/198.51.100.11 contradicted'],
    said: true,
  })
}, 60_000)
