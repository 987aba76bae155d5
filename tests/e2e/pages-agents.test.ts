/** The dashboard explains agents with the client package's own list: one source, held equal here. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { operators, reportedName } from '../../sdk/agents/agent-list.ts'
import { agentSources } from '../../sdk/agents/agent-sources.ts'
import { detectAgent } from '../../sdk/agents/detect-agent.ts'
import { sampleBody } from '../../web/components/copy.tsx'

/** Neither may import the other, so the dashboard has the list as data. */
const operatorsPath = join(import.meta.dir, '../../web/pages/detect/operators.json')

test('operators.json equals the list of sdk/agents with its sources', async () => {
  // To bring it up to date: write JSON.stringify(list) into the file and format it.
  const list = operators.map(({ vendor, agents }) => ({
    vendor,
    agents: Object.fromEntries(
      Object.entries(agents).map(([entry, purpose]) => [reportedName(entry), purpose]),
    ),
    source: agentSources[vendor],
  }))
  expect(await Bun.file(operatorsPath).json()).toEqual(list)
})

test('detectAgent finds the bot of the first sample', () => {
  const { agent } = (JSON.parse(sampleBody('agent', 0)) as { events: [{ agent: { name: string } }] })
    .events[0]
  expect(detectAgent(`Mozilla/5.0 (compatible; ${agent.name}/1.2)`)).toMatchObject(agent)
})
