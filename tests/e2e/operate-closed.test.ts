/** A closed network: everything works where no packet can leave, and none is even tried. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { runInOwnNetwork } from '../support/own-network.ts'

/** A network of its own with a route to a device that leads nowhere and counts; IPv6 off, for it chatters by itself. */
const network = [
  'echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6',
  'ip link set lo up',
  'ip link add nowhere type veth peer name beyond',
  'ip address add 10.255.255.1/24 dev nowhere',
  'ip link set beyond up arp off',
  'ip link set nowhere up arp off',
  'ip route add default dev nowhere',
]

test('ingest, access logs with verdicts, backup, doctor and the dashboard send no packet to another host', async () => {
  const inside = join(import.meta.dir, './operate-closed-inside.ts')
  const { code, stderr, answer } = await runInOwnNetwork(network, inside)
  expect([code, stderr]).toEqual([0, expect.any(String)])
  expect(answer).toEqual({
    interfaces: ['beyond:', 'lo:', 'nowhere:'],
    posted: 202,
    drained: 202,
    imported: 0,
    backup: 0,
    doctor: 0,
    shown: true,
    stopped: 0,
    packetsOfServer: 0,
    packetsOfAttempt: expect.any(Number),
  })
  expect((answer as { packetsOfAttempt: number }).packetsOfAttempt).toBeGreaterThan(0)
}, 90_000)
