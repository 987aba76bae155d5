/** Blocklists: which agents they contain, and that their patterns find what `detectAgent` finds. */
import { expect, test } from 'bun:test'
import crawlers from 'crawler-user-agents'
import { detectAgent } from '../../sdk/agents/detect-agent.ts'
import type { EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { bundledEvidence } from '../evidence/evidence.ts'
import { blocklistOf, knownAgents, type AgentTraffic, type BlockChoice } from './blocklist.ts'
import { blocklistWriters, patternOf } from './blocklist-formats.ts'

const listed = {
  source: 'https://example.com/list.json',
  published: '2026-05-01',
  seen: '2026-10-01',
  digest: '',
}
const pack: Pick<EvidencePack, 'lists'> = {
  lists: [
    {
      ...listed,
      list: 'gptbot',
      operator: 'OpenAI',
      products: { GPTBot: 'crawler' },
      networks: ['20.0.0.0/24'],
    },
    {
      ...listed,
      list: 'oai-searchbot',
      operator: 'OpenAI',
      products: { 'OAI-SearchBot': 'crawler' },
      seen: '2026-01-01',
      networks: ['30.0.0.0/24', '20.0.0.0/24'],
    },
    {
      ...listed,
      list: 'chatgpt-user',
      operator: 'OpenAI',
      products: { 'ChatGPT-User': 'user' },
      networks: ['40.0.0.0/24'],
    },
    {
      ...listed,
      list: 'common',
      operator: 'Common Crawl',
      products: { '*': 'crawler' },
      networks: ['2600:1f28::/48'],
    },
  ],
}
const emptyChoice: BlockChoice = { purposes: [], agents: [], vendors: [], unverified: false }
const noTraffic = (): AgentTraffic => ({ requests: 0, firstMs: null, lastMs: null })
const facts = { command: 'sightglass export blocklist', since: '2026-10-25', until: '2026-11-23' }
const listOf = (choice: Partial<BlockChoice>, traffic = noTraffic) =>
  blocklistOf({ ...emptyChoice, ...choice }, pack, '2026-06-01', traffic)

test('agents are chosen by purpose, name and operator, in any letter case', () => {
  const { everywhere, outside } = listOf({ agents: ['gptbot', 'CCBot'], vendors: ['mistral ai'] })
  expect(everywhere.map(({ name, why: reason }) => `${name}: ${reason}`)).toEqual([
    'CCBot: --agent CCBot',
    'GPTBot: --agent GPTBot',
    'MistralAI-Index: --vendor Mistral AI',
    'MistralAI-Training: --vendor Mistral AI',
    'MistralAI-User: --vendor Mistral AI',
  ])
  expect(outside).toEqual([])
  const training = listOf({ purposes: ['training'] }).everywhere
  expect(training.map(({ name }) => name)).toContain('ClaudeBot')
  expect(training.every(({ purpose }) => purpose === 'training')).toBe(true)
})

test('unverified refuses crawlers outside of all networks of their operator, unless a list is too old', () => {
  const { everywhere, outside, old } = listOf({ unverified: true, agents: ['CCBot'] })
  expect(everywhere.map(({ name }) => name)).toEqual(['CCBot'])
  expect(outside.map(({ vendor, agents }) => [vendor, ...agents.map(({ name }) => name)])).toEqual([
    ['OpenAI', 'GPTBot'], // not OAI-SearchBot, whose list is old, and not ChatGPT-User, which people run
  ])
  expect(outside[0]!.networks).toEqual(['20.0.0.0/24', '30.0.0.0/24', '40.0.0.0/24'])
  expect(old.map(({ list }) => list)).toEqual(['oai-searchbot'])
  const wild = listOf({ unverified: true }).outside.find(({ vendor }) => vendor === 'Common Crawl')
  expect(wild!.agents.map(({ name }) => name)).toEqual(['CCBot'])
})

test('nothing chosen and unknown names are errors that say what to do', () => {
  expect(() => listOf({})).toThrow('choose what to block: --purpose, --agent, --vendor or --unverified')
  expect(() => listOf({ agents: ['GPTBott'] })).toThrow('--agent "GPTBott" is not known')
  expect(() => listOf({ vendors: ['Nobody Inc'] })).toThrow('--vendor "Nobody Inc" is not known')
  const withLists = listOf({ unverified: true })
  expect(() => blocklistWriters.robots(withLists, facts)).toThrow('robots.txt has no addresses')
})

test('patterns find every sample in which detectAgent finds the agent, and no part of a word', () => {
  const agents = new Map(knownAgents().map((agent) => [`${agent.vendor} ${agent.name}`, agent]))
  const samples = crawlers.flatMap(({ instances = [] }) => instances)
  let matchCount = 0
  for (const sample of samples) {
    const agent = detectAgent(sample)
    if (agent === null) continue
    const knownAgent = agents.get(`${agent.vendor} ${agent.name}`)
    expect(new RegExp(patternOf([knownAgent!]), 'i').test(sample), sample).toBe(true)
    matchCount++
  }
  expect(matchCount).toBeGreaterThan(500)
  for (const agent of agents.values()) {
    const pattern = patternOf([agent])
    // Each server quotes in its own way; these characters mean the same in all of them.
    expect(pattern, agent.name).toMatch(/^[A-Za-z0-9 _\-[\]()|^$./:+!*]+$/)
    expect(new RegExp(pattern, 'i').test(`x${agent.texts[0]}`)).toBe(false)
  }
})

test('with the bundled lists, rules by address fit exactly the samples of their agents', async () => {
  const { pack: bundled } = await bundledEvidence()
  const { outside } = blocklistOf({ ...emptyChoice, unverified: true }, bundled, '2026-06-01', noTraffic)
  const rules = outside.map(({ vendor, agents, except }) => ({
    vendor,
    names: agents.map(({ name }) => name),
    find: new RegExp(patternOf(agents), 'i'),
    not: except.length === 0 ? null : new RegExp(patternOf(except), 'i'),
  }))
  let matchCount = 0
  for (const sample of crawlers.flatMap(({ instances = [] }) => instances)) {
    if (/\blike googlebot/i.test(sample)) continue // no pattern without look-around can tell it
    const agent = detectAgent(sample)
    const fitting = rules.filter(({ find, not }) => find.test(sample) && not?.test(sample) !== true)
    const right = rules.filter(({ vendor, names }) => vendor === agent?.vendor && names.includes(agent.name))
    expect(
      fitting.map(({ vendor }) => vendor),
      sample,
    ).toEqual(right.map(({ vendor }) => vendor))
    matchCount += right.length
  }
  expect(matchCount).toBeGreaterThan(40)
  const fullBlocklist = blocklistOf(
    { ...emptyChoice, purposes: ['training', 'search', 'assistant', 'other'] },
    bundled,
    '2026-06-01',
    noTraffic,
  )
  const expressions = [...blocklistWriters.apache(fullBlocklist, facts).matchAll(/m#(.*)#i/g)].map(
    ([, expression]) => expression!.length,
  )
  expect(Math.max(...expressions)).toBeLessThan(8_191) // Apache refuses longer ones
})

test('comments say why, with what was seen; equal data makes equal files', () => {
  const traffic = () => ({
    requests: 3_241,
    firstMs: Date.UTC(2026, 10, 2, 3),
    lastMs: Date.UTC(2026, 10, 22, 9),
  })
  const choice = { unverified: true, agents: ['CCBot'] }
  for (const [format, write] of Object.entries(blocklistWriters)) {
    if (format === 'robots') continue
    const text = write(listOf(choice, traffic), facts)
    expect(text).toBe(write(listOf(choice, traffic), facts))
    if (format === 'json') continue
    expect(text).toContain('# Generated by: sightglass export blocklist\n')
    expect(text).toContain(
      '# CCBot of Common Crawl (training, --agent CCBot): 3,241 requests, 2026-11-02 to 2026-11-22.\n',
    )
    expect(text).toContain(
      '# List gptbot of 2026-05-01, read 2026-10-01 at https://example.com/list.json: 1 network.\n',
    )
    expect(text).toContain(
      'oai-searchbot of 2026-05-01, read 2026-01-01 at https://example.com/list.json: too old',
    )
    expect(text).toContain('# Refuses 1 agent everywhere and 1 agent outside published networks.\n')
  }
  expect(blocklistWriters.robots(listOf({ agents: ['CCBot', 'GPTBot'] }), facts)).toEndWith(
    `# CCBot of Common Crawl (training, --agent CCBot): 0 requests.
User-agent: CCBot
# GPTBot of OpenAI (training, --agent GPTBot): 0 requests.
User-agent: GPTBot
Disallow: /
`,
  )
  expect(JSON.parse(blocklistWriters.json(listOf(choice, traffic), facts))).toMatchObject({
    format: 'sightglass-blocklist-1',
    refuse: [{ name: 'CCBot', requests: 3_241, firstSeen: '2026-11-02', lastSeen: '2026-11-22' }],
    refuseOutside: [{ vendor: 'OpenAI', agents: [{ name: 'GPTBot' }], lists: [{ list: 'gptbot' }, {}, {}] }],
    tooOld: [{ list: 'oai-searchbot' }],
  })
})

test("a stranger's pack cannot leave its comment", () => {
  const source = 'https://x/\nreturn 200;\r\u2028# '
  const lists = [{ ...pack.lists[0]!, source, list: 'x\n}' }]
  const blocklist = blocklistOf({ ...emptyChoice, unverified: true }, { lists }, '2026-06-01', noTraffic)
  for (const format of ['nginx', 'caddy', 'apache'] as const) {
    const text = blocklistWriters[format](blocklist, facts)
    expect(text).toMatch(/^[\x20-\x7e\t\n]*$/)
    expect(text).not.toMatch(/^(return 200|\})?;/m)
    expect(text).toContain(
      '# List x?} of 2026-05-01, read 2026-10-01 at https://x/?return 200;??# : 1 network.',
    )
  }
})
