/** The cost of judging an address by the bundled lists and by a million networks, compared with JSON.parse of it. */
import { packFormat, type EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { judge, openEvidence, type Evidence } from '../../sdk/judge/judge.ts'
import { bundledEvidence } from '../../server/evidence/evidence.ts'
import { machine, recordTable, table } from './report.ts'

const claim = { vendor: 'OpenAI', name: 'GPTBot' }
const options = { atMs: Date.parse('2026-11-20T12:00:00Z') }

/** Networks of 1,000 operators. */
function largePack(networks: number): EvidencePack {
  const origin = { source: 'https://example.com', seen: '2026-08-20', published: '2026-08-20', digest: '' }
  const network = (index: number): string =>
    `${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}.0/${24 + (index % 9)}`
  const lists = Array.from({ length: 1_000 }, (_, list) => ({
    list: `list-${list}`,
    operator: list === 0 ? 'OpenAI' : `Operator ${list}`,
    ...origin,
    products: { GPTBot: 'crawler' as const },
    networks: Array.from({ length: networks / 1_000 }, (_, index) => network((list * 1_000 + index) * 7)),
  }))
  return { format: packFormat, made: '2026-08-20T00:00:00Z', lists, hosts: [], directories: [], tokens: [] }
}

/** Half of the first are in a list of OpenAI. */
function addressesOf({ lists }: EvidencePack): string[] {
  const operatorNetworks = lists.find(
    ({ operator, networks }) => operator === 'OpenAI' && networks.length > 0,
  )!.networks
  return Array.from({ length: 1_000 }, (_, index) =>
    index % 2 === 0
      ? operatorNetworks[index % operatorNetworks.length]!.replace(/\/.*/, '')
      : `198.${index % 200}.${index % 250}.7`,
  )
}

/** Nanoseconds per address. */
export interface JudgeBench {
  parse: number
  bundled: number
  v6: number
  many: number
}

interface Run {
  rounds: number
  roundMs: number
  networks: number // of the larger pack
}

/** The best of several alternating rounds. */
export async function judgeBench({ rounds, roundMs, networks }: Run): Promise<JudgeBench> {
  const bundled = await bundledEvidence()
  const largest = largePack(networks)
  const v4 = addressesOf(bundled.pack)
  const quoted = v4.map((address) => JSON.stringify(address))
  const v6 = v4.map((_, index) => `2001:db8:${index.toString(16)}::${(index * 7).toString(16)}`)
  const judged = (addresses: string[], evidence: Evidence) => (): number => {
    let verified = 0
    for (const address of addresses)
      if (judge(claim, { address }, evidence, options).verdict === 'verified') verified++
    return verified
  }
  const runs: { [name in keyof JudgeBench]: () => unknown } = {
    parse: () => quoted.reduce((sum, text) => sum + (JSON.parse(text) as string).length, 0),
    bundled: judged(v4, bundled.evidence()),
    v6: judged(v6, bundled.evidence()),
    many: judged(addressesOf(largest), openEvidence(largest)),
  }
  const best: JudgeBench = { parse: Infinity, bundled: Infinity, v6: Infinity, many: Infinity }
  for (let round = 0; round < rounds; round++) {
    for (const name of Object.keys(runs) as (keyof JudgeBench)[]) {
      const start = performance.now()
      let thousands = 0
      for (; performance.now() - start < roundMs; thousands++) runs[name]()
      best[name] = Math.min(best[name], ((performance.now() - start) * 1_000) / thousands)
    }
  }
  return best
}

export function judgeTable({ parse, bundled, v6, many: manyNs }: JudgeBench): string {
  const row = (title: string, ns: number) => [title, Math.round(ns), (ns / parse).toFixed(1)]
  return table(
    ['one address', 'ns', '× floor'],
    [
      row('floor: JSON.parse of the address', parse),
      row('verdict, bundled lists', bundled),
      row('verdict, bundled lists, IPv6', v6),
      row('verdict, a thousand lists', manyNs),
    ],
  )
}

if (import.meta.main) {
  const text = judgeTable(await judgeBench({ rounds: 10, roundMs: 300, networks: 1_000_000 }))
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (process.argv.includes('--record')) recordTable('Judging an address', text)
}
