/** Forward-confirmed DNS on the executable, in a network of its own whose only DNS server is the test's. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { runInOwnNetwork } from '../support/own-network.ts'
import { tempDir } from '../support/temp-dir.ts'

test('with --evidence-dns names prove and disprove agents; without it no name is looked up', async () => {
  using temp = tempDir('resolver')
  writeFileSync(temp.join('resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n')
  const setUp = ['ip link set lo up', `mount --bind '${temp.join('resolv.conf')}' /etc/resolv.conf`]
  const { code, stderr, answer } = await runInOwnNetwork(
    setUp,
    join(import.meta.dir, 'evidence-dns-inside.ts'),
  )
  expect([code, stderr]).toEqual([0, expect.any(String)])
  expect(answer).toEqual({
    codes: [0, 0],
    askedWithout: 0,
    verdicts: ['/198.51.100.10 verified', '/198.51.100.11 contradicted'],
    said: true,
  })
}, 60_000)
