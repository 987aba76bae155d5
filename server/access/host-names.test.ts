/** Host names of addresses, asked of a real DNS server on this machine. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Resolver } from 'node:dns/promises'
import { startDnsServer, type DnsServer } from '../../tests/support/dns-server.ts'
import { bundledEvidence } from '../evidence/evidence.ts'
import type { Judgment } from '../../sdk/judge/judge.ts'
import { agentEvents } from './agent-events.ts'
import { formatNamed } from './formats.ts'
import { startHostNames, type HostNames } from '../system/host-names.ts'
import { lookUpAgents } from './look-up-agents.ts'

const ownAddresses = { v4: '198.51.100.10', v6: '2001:db8:1::10' }
const forged = '198.51.100.11'
const foreign = '198.51.100.12'
const nameless = '198.51.100.13'
const silent = '198.51.100.14'
let server: DnsServer
let names: HostNames
let nowMs = Date.UTC(2026, 10, 1)

function resolverOn(port: number): Resolver {
  const resolver = new Resolver({ timeout: 300, tries: 1 })
  resolver.setServers([`127.0.0.1:${port}`])
  return resolver
}

beforeAll(async () => {
  const spider = (address: string) => [`spider-${address.replaceAll(/[.:]/g, '-')}.yandex.com`]
  server = await startDnsServer({
    names: {
      [ownAddresses.v4]: spider(ownAddresses.v4),
      [ownAddresses.v6]: spider(ownAddresses.v6),
      [forged!]: spider(ownAddresses.v4),
      [foreign!]: ['host.example'],
    },
    addresses: {
      [spider(ownAddresses.v4)[0]!]: [ownAddresses.v4],
      [spider(ownAddresses.v6)[0]!]: [ownAddresses.v6],
      'host.example': [foreign!],
    },
  })
  names = startHostNames({ now: () => nowMs }, resolverOn(server.port))
})
afterAll(() => server.close())

const line = (address: string, userAgent = 'YandexBot/3.0') =>
  `${address} - - [01/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0 (compatible; ${userAgent})"\n`

/** The verdict on each line, after the names were looked up. */
async function verdicts(text: string, hostNames: HostNames): Promise<unknown[]> {
  const evidence = (await bundledEvidence()).evidence()
  const eventsOf = agentEvents({
    siteId: 'shop',
    keepQuery: [],
    keepAddresses: false,
    trustedProxies: [],
    evidence,
    evidenceMaxAgeDays: 36_500,
    hostNames,
    observedBy: 'appliance',
  })
  await lookUpAgents(hostNames, text, formatNamed('combined').open(), eventsOf.unproved)
  const parse = formatNamed('combined').open()
  let offset = 0
  return text
    .split('\n')
    .slice(0, -1)
    .map((logLine) => {
      const request = parse(logLine, 0, logLine.length)
      if (request === null || request === 'note') return null
      const { events } = eventsOf(
        request,
        { source: { name: 'x', secret: null }, offset: offset++, line: logLine },
        null,
      )
      const { agent } = JSON.parse(events[0]!.json) as { agent: Judgment }
      const { verdict, evidence: judgedEvidence } = agent
      return judgedEvidence === undefined ? verdict : `${verdict} by ${judgedEvidence.method}`
    })
}

test('a name of the operator that leads back to the address proves the agent, and a false one disproves it', async () => {
  const text = [ownAddresses.v4, ownAddresses.v6, forged!, foreign!, nameless!]
    .map((address) => line(address))
    .join('')
  expect(await verdicts(text, names)).toEqual([
    'verified by dns',
    'verified by dns',
    'contradicted by dns',
    'contradicted by dns',
    'unverifiable',
  ])
})

test('each address is asked for once a day, and only where names can prove the agent', async () => {
  server.asked.length = 0
  const otherLines = [line('198.51.100.99', 'GPTBot/1.2'), line('127.0.0.1'), line('host.example'), line('-')]
  await verdicts([line(ownAddresses.v4), line(ownAddresses.v4), ...otherLines].join(''), names)
  expect(server.asked).toEqual([])
  nowMs += 25 * 3_600_000
  await names.lookUp(new Set([ownAddresses.v4]))
  expect(server.asked.length).toBe(2)
})

test('a resolver that is away proves and disproves nothing, within its limit', async () => {
  const away = startHostNames({ now: () => nowMs }, resolverOn(9))
  expect(
    await verdicts([ownAddresses.v4, forged!, silent!].map((address) => line(address)).join(''), away),
  ).toEqual(Array(3).fill('unverifiable'))
})
