/** The pushes of the demo are valid, cover every tool it calls, and have a history. */
import { expect, test } from 'bun:test'
import type { Issue } from '../errors.ts'
import { checkSchema } from '../http/validate.ts'
import { memoryBodyModel } from '../api/registry/model.ts'
import { computedScore } from '../api/registry/record.ts'
import { differences } from '../api/registry/record.ts'
import { toolsBodyModel } from '../api/registry/model.ts'
import { demoSiteId } from './event.ts'
import { demoRegistry } from './push.ts'
import { demoMemory } from './push.ts'
import { demoTools } from './tools.ts'
import { demoDays } from './traffic.ts'

const nowMs = Date.UTC(2026, 10, 20, 14, 30)
const issuesOf = (schema: Parameters<typeof checkSchema>[0], body: object): Issue[] => {
  const issues: Issue[] = []
  checkSchema(schema, JSON.parse(JSON.stringify(body)), issues)
  return issues
}

test('the newest registry has every tool that the demo calls, with its page', () => {
  const pushes = demoRegistry(nowMs)
  for (const { pushed } of pushes) {
    expect(issuesOf(toolsBodyModel, { siteId: demoSiteId, tools: pushed })).toEqual([])
    expect(pushed.every(({ demo }) => demo)).toBe(true)
  }
  const newest = pushes.at(-1)!.pushed
  expect(newest.map(({ name, page }) => ({ name, page }))).toEqual(
    demoTools.map(({ name, page }) => ({ name, page })),
  )
})

test('the first push is older than the first event, the second changes some tools and adds others', () => {
  const [first, second] = demoRegistry(nowMs)
  expect(first!.atMs).toBeLessThan(nowMs - demoDays * 86_400_000)
  const toolsBefore = new Map(first!.pushed.map((tool) => [tool.name, tool]))
  const changes = second!.pushed.map((tool) => {
    const old = toolsBefore.get(tool.name)
    return old === undefined ? 'added' : differences(old, tool).length > 0 ? 'changed' : 'same'
  })
  expect(changes.filter((change) => change === 'added')).toHaveLength(9)
  expect(changes.filter((change) => change === 'changed').length).toBeWithin(8, 20)
})

test('each memory snapshot is fuller than the previous one and scores higher', () => {
  const pushes = demoMemory(nowMs)
  for (const { pushed } of pushes) {
    expect(issuesOf(memoryBodyModel, { siteId: demoSiteId, snapshot: pushed })).toEqual([])
    expect(pushed.demo).toBe(true)
  }
  expect(pushes.map(({ pushed }) => computedScore({ ...pushed }))).toEqual([50, 67, 83])
  expect(pushes.map(({ atMs }) => atMs)).toEqual(pushes.map(({ atMs }) => atMs).toSorted((a, b) => a - b))
})
