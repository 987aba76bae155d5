/** `sightglass export blocklist`: configuration of a web server that refuses chosen or unverified agents. */
import type { Json } from '../../../db/contract/store.ts'
import { blocklistOf, type AgentTraffic, type BlockChoice, type KnownAgent } from '../../access/blocklist.ts'
import { blocklistWriters } from '../../access/blocklist-formats.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { UsageError } from '../../errors.ts'
import { evidenceOf } from '../../evidence/evidence.ts'
import { flagOf, numberOf, textOf, textsOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { evidenceOptions } from '../access-options.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { requireOrg, withData } from '../data-command.ts'
import { choice, folderPath, textList, toggle } from '../option.ts'
import { orgOption } from '../options.ts'
import { print } from '../print.ts'
import { openOutput } from './export.ts'
import { dayMs } from '../../../db/contract/units.ts'

const purposes = ['training', 'search', 'assistant', 'other'] as const
const formats = Object.keys(blocklistWriters) as (keyof typeof blocklistWriters)[]
const days = 30

const options = {
  format: { ...choice(formats, 'web server, or form of the file'), needed: true },
  purpose: {
    read: textList,
    choices: purposes,
    value: 'PURPOSE[,PURPOSE]',
    default: '',
    help: 'refuse agents that fetch for this purpose',
    adds: true,
  },
  agent: {
    read: textList,
    value: 'NAME[,NAME]',
    default: '',
    help: 'refuse this agent, such as GPTBot',
    adds: true,
  },
  vendor: {
    read: textList,
    value: 'NAME[,NAME]',
    default: '',
    help: 'refuse all agents of this operator, such as OpenAI',
    adds: true,
  },
  unverified: toggle('also refuse agents whose address is not among those that their operator publishes'),
  out: { read: folderPath, value: 'FILE', default: null, help: 'file to write, by default standard output' },
  yes: { ...toggle('replace an existing file'), flagOnly: true },
  ...evidenceOptions,
  ...orgOption,
} as const

export const exportBlocklist: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'export blocklist',
      summary: 'write configuration of a web server that refuses agents',
      about: [
        'Refuses the agents that --purpose, --agent and --vendor name, wherever they come from. --unverified also refuses every other agent whose operator publishes addresses, unless the request comes from one of them. The addresses are those of "evidence status". Agents that people run on their own devices, and operators whose list is older than --evidence-max-age, are not refused by address.',
        'Comments say why each agent is refused, and how many requests it sent since the start of the UTC day 29 days ago. The same data results in the same file on the same day. All agents may still read /robots.txt.',
      ],
      examples: [
        'sightglass export blocklist --format nginx --purpose training --out sightglass-blocklist.conf',
        'sightglass export blocklist --format caddy --unverified --out sightglass-blocklist.caddy --yes',
        'sightglass export blocklist --format robots --vendor ByteDance --agent CCBot',
      ],
      options,
      work: { '': makeBlocklist },
      run,
    }),
  ],
}

async function run(invocation: Invocation<typeof options>): Promise<number> {
  const { out, yes, json, format, unverified, org, purpose, agent, vendor } = invocation.values
  if (format === null) throw new UsageError(`--format is one of ${formats.join(', ')}`)
  return withData(invocation, 'write', async (data) => {
    const maxAgeDays = invocation.values['evidence-max-age']
    const params = { org, format, unverified, maxAgeDays, purposes: purpose, agents: agent, vendors: vendor }
    const { text, agents } = (await data.call('export blocklist', params)) as { text: string; agents: number }
    const output = openOutput(out, yes)
    output.write(text)
    output.end()
    if (out !== null)
      print(
        json ? JSON.stringify({ path: out, format, agents }) : `Wrote rules for ${agents} agents to ${out}.`,
      )
    return 0
  })
}

async function makeBlocklist({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const format = formats.find((formatName) => formatName === textOf(params, 'format'))
  if (format === undefined) throw new UsageError(`--format is one of ${formats.join(', ')}`)
  const blockChoice: BlockChoice = {
    purposes: textsOf(params, 'purposes'),
    agents: textsOf(params, 'agents'),
    vendors: textsOf(params, 'vendors'),
    unverified: flagOf(params, 'unverified'),
  }
  for (const purpose of blockChoice.purposes)
    if (!purposes.some((knownPurpose) => knownPurpose === purpose))
      throw new UsageError(`--purpose "${purpose}" is not one of ${purposes.join(', ')}`)
  const org = await requireOrg(store, textOf(params, 'org'))
  const nowMs = clock.now()
  const sinceMs = nowMs - (nowMs % dayMs) - (days - 1) * dayMs // whole days, so that a file does not change hourly
  const trafficOf = await readTraffic(store, org.id, sinceMs, nowMs)
  const oldBefore = isoTime(nowMs - numberOf(params, 'maxAgeDays') * dayMs).slice(0, 10)
  const { pack } = await evidenceOf(await store.evidence.read())
  const blocklist = blocklistOf(blockChoice, pack, oldBefore, trafficOf)
  const text = blocklistWriters[format](blocklist, {
    command: commandText(format, blockChoice),
    since: isoTime(sinceMs).slice(0, 10),
    until: isoTime(nowMs).slice(0, 10),
  })
  const act = { action: 'blocklist.exported', target: org.id, metadata: { format, ...blockChoice } }
  await store.audit.append(auditEntry({ orgId: org.id, actor: 'cli' }, act, nowMs))
  const agents = blocklist.everywhere.length + blocklist.outside.flatMap((rule) => rule.agents).length
  return { text, agents }
}

/** Requests by the name of the agent, as access logs show them, with the first and the last hour. */
async function readTraffic(
  { events }: WorkContext['store'],
  orgId: string,
  sinceMs: number,
  nowMs: number,
): Promise<(agent: KnownAgent) => AgentTraffic> {
  const { rows } = await events.breakdown({
    orgId,
    sinceMs,
    untilMs: null,
    by: 'name',
    types: ['agent.requested'],
    stepMs: null,
  })
  const byName = new Map<string, AgentTraffic>()
  for (const { value, count, firstMs, lastMs } of rows) {
    if (value === null || firstMs > nowMs) continue
    const traffic = byName.get(value) ?? { requests: 0, firstMs: null, lastMs: null }
    byName.set(value, {
      requests: traffic.requests + count,
      firstMs: Math.min(traffic.firstMs ?? firstMs, firstMs),
      lastMs: Math.max(traffic.lastMs ?? lastMs, lastMs),
    })
  }
  return ({ name }) => byName.get(name) ?? { requests: 0, firstMs: null, lastMs: null }
}

function commandText(
  format: string,
  { purposes: fetched, agents, vendors, unverified }: BlockChoice,
): string {
  const list = (name: string, values: string[]): string[] =>
    values.length === 0 ? [] : [`--${name} ${quoted(values.join(','))}`]
  return [
    `sightglass export blocklist --format ${format}`,
    ...list('purpose', fetched),
    ...list('agent', agents),
    ...list('vendor', vendors),
    ...(unverified ? ['--unverified'] : []),
  ].join(' ')
}

const quoted = (text: string): string =>
  /^[\w.,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
