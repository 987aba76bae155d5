/** Operators and agents are found by name, with a purpose and a source. */
import { expect, test } from 'bun:test'
import operators from './operators.json'
import { knownAgent } from './vendor-dialog.tsx'

test('agents and operators are found by their names', () => {
  expect(knownAgent('gptbot')).toMatchObject({ operator: 'OpenAI', purposes: ['training'], agents: [] })
  expect(knownAgent('OpenAI')?.agents.map((agent) => agent.name)).toContain('GPTBot')
  expect(knownAgent('Operator')).toMatchObject({ operator: 'OpenAI', purposes: ['assistant'] })
  expect(knownAgent(' ClaudeBot ')?.operator).toBe('Anthropic')
})

test('a name that is not in the list has no explanation', () => {
  for (const name of ['', 'constructor', 'GPTBot2', '__proto__']) expect(knownAgent(name)).toBeNull()
})

test('at least 40 operators, each with a URL as source', () => {
  expect(operators.length).toBeGreaterThanOrEqual(40)
  for (const { vendor } of operators) {
    expect(knownAgent(vendor)?.source).toMatch(/^https?:\/\/[a-z0-9.-]+/)
  }
})
