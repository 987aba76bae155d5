/** The dashboard explains agents with the client package's own list: one source, held equal here. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { operators } from '../../sdk/agents/agent-list.ts'
import { agentSources } from '../../sdk/agents/agent-sources.ts'

/** Neither may import the other, so the dashboard keeps the list as data. */
const kept = join(import.meta.dir, '../../web/pages/detect/operators.json')

test('operators.json is the list of sdk/agents with its sources', async () => {
  // To bring it up to date: write JSON.stringify(list) into the file and format it.
  const list = operators.map((one) => ({ ...one, source: agentSources[one.vendor] }))
  expect(await Bun.file(kept).json()).toEqual(list)
})
