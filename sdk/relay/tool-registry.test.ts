/** The tools that pages report to a relay: pushed once, bounded, and disabled when no page has them. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Problem } from '../client/problem.ts'
import type { Tool } from '../sync/intel-sync.ts'
import { IntelError } from '../wire/retry.ts'
import { createToolRegistry } from './tool-registry.ts'

function setUp(accept?: (tool: Tool) => boolean) {
  const pushes: Tool[][] = []
  const problems: Problem[] = []
  const state = { ms: 0, fail: null as ((tools: Tool[]) => IntelError | null) | null }
  const sync = {
    async pushTools(tools: Tool[]) {
      const error = state.fail?.(tools)
      if (error) throw error
      pushes.push(tools)
      return tools.length
    },
  }
  const report = (problem: Problem): void => void problems.push(problem)
  const registry = createToolRegistry({ sync, accept, report, nowMs: () => state.ms })
  return { registry, pushes, problems, state }
}

const tool = (name: string, overrides: object = {}) => ({ name, description: 'x', ...overrides })
const refusal = (status: number | null): IntelError =>
  new IntelError('no', {
    status,
    issues: status === 400 ? [{ path: 'tools.0', message: 'bad', code: 'x' }] : [],
  })

test('a thousand visitors with the same tools cause one push', async () => {
  const { registry, pushes } = setUp()
  for (let page = 0; page < 1_000; page++) {
    expect(registry.change(`p${page}`, [tool('a'), tool('b')], [])).toBe(2)
    if (page % 100 === 0) await registry.flush()
  }
  await registry.flush()
  expect(pushes).toEqual([[tool('a'), tool('b')]])
})

test('a tool is disabled when no open page has it, and enabled when one registers it', async () => {
  const { registry, pushes, state } = setUp()
  const step = async (page: string, tools: object[], removed: string[]) => {
    registry.change(page, tools, removed)
    await registry.flush()
    return pushes.splice(0).flat()
  }
  expect(await step('p1', [tool('a')], [])).toEqual([tool('a')])
  expect(await step('p2', [tool('a')], [])).toEqual([])
  expect(await step('p1', [], ['a', 'unknown'])).toEqual([])
  expect(await step('p2', [], ['a'])).toEqual([tool('a', { enabled: false })])
  expect(await step('p3', [tool('a')], [])).toEqual([tool('a')])
  await step('p4', [tool('a')], [])
  registry.leave('p3')
  await step('p5', [tool('a')], [])
  expect(await step('p4', [], ['a'])).toEqual([])
  await step('p6', [tool('a')], [])
  state.ms += 31 * 60_000 // p5 has closed without a word
  expect(await step('p6', [], ['a'])).toEqual([tool('a', { enabled: false })])
})

test('law: pages that disagree make at most 10 versions at once and 10 an hour, and the newest arrives', async () => {
  const steps = fc.array(fc.record({ text: fc.nat(3), waitMs: fc.nat(200_000), isRemoval: fc.boolean() }))
  await fc.assert(
    fc.asyncProperty(steps, async (actions) => {
      const { registry, pushes, state } = setUp()
      for (const { text, waitMs, isRemoval } of actions) {
        state.ms += waitMs
        registry.change(
          'p',
          isRemoval ? [] : [tool('a', { description: String(text) })],
          isRemoval ? ['a'] : [],
        )
        await registry.flush()
      }
      expect(pushes.length).toBeLessThanOrEqual(10 + Math.floor(state.ms / 360_000))
      state.ms += 3_600_000
      registry.change('p', [tool('a', { description: 'last' })], [])
      await registry.flush()
      expect(pushes.at(-1)).toEqual([tool('a', { description: 'last' })])
    }),
  )
})

test('hostile descriptors: only known fields, within the limits of the appliance', async () => {
  const { registry, pushes } = setUp((candidate) => candidate.name !== 'refused')
  let deep: object = {}
  for (let depth = 0; depth < 40; depth++) deep = { deep }
  const accepted = registry.change(
    'p',
    [
      null,
      5,
      [],
      {},
      { name: '' },
      { name: 'x'.repeat(129) },
      { name: 7 },
      tool('refused'),
      tool('big', { inputSchema: { text: 'x'.repeat(70_000) } }),
      tool('deep', { inputSchema: deep }),
      tool('nul\0', { title: `\ud800${'t'.repeat(300)}`, inputSchema: { 'k\0': '\\u0000 \\' }, evil: 1 }),
      tool('long', { description: 'd'.repeat(40_000), page: '/x', annotations: { readOnlyHint: true } }),
    ],
    [5, null],
  )
  await registry.flush()
  expect(accepted).toBe(3)
  expect(pushes.flat()).toEqual([
    tool('deep'),
    tool('nul\ufffd', { title: `\ufffd${'t'.repeat(199)}`, inputSchema: { 'k\ufffd': '\\u0000 \\' } }),
    tool('long', { description: 'd'.repeat(32_000), annotations: { readOnlyHint: true } }),
  ])
  for (let index = 0; index < 1_100; index++) registry.change('p', [tool(`t${index}`)], [])
  await registry.flush()
  expect(pushes.flat().length).toBe(1_000)
  expect(Math.max(...pushes.map((push) => push.length))).toBe(100)
})

test('one bad tool does not hold back the others; an appliance that is down gets all later', async () => {
  const { registry, pushes, problems, state } = setUp()
  state.fail = (tools) => (tools.some(({ name }) => name === 'bad') ? refusal(400) : null)
  registry.change('p', [tool('a'), tool('bad'), tool('b')], [])
  expect(await registry.flush()).toBe(true)
  expect(pushes.flat().map(({ name }) => name)).toEqual(['a', 'b'])
  expect(problems.map(({ code }) => code)).toEqual(['rejected'])
  state.fail = () => refusal(null)
  registry.change('p', [tool('c')], [])
  expect(await registry.flush()).toBe(false)
  expect(problems.at(-1)?.code).toBe('unreachable')
  state.fail = null
  expect(await registry.flush()).toBe(true)
  expect(pushes.at(-1)?.map(({ name }) => name)).toEqual(['c'])
})
