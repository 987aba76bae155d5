/** Every verdict has a sentence, whatever the fields of a stranger's event are. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { verdictSentence } from './verdict.ts'

const list = { method: 'address', list: 'gptbot', listDate: '2025-10-30' }
const sentence = (verdict: string, evidence?: object, network?: string) =>
  verdictSentence({ vendor: 'OpenAI', name: 'GPTBot', verdict, evidence }, network)

test('the sentence names what the operator publishes', () => {
  expect(sentence('verified', list)).toBe(
    'The address is in a network that OpenAI publishes (gptbot, 2025-10-30).',
  )
  expect(sentence('contradicted', { ...list, networks: 1_017 }, '203.0.113.0/24')).toBe(
    'OpenAI publishes 1,017 networks (gptbot, 2025-10-30). The address, in 203.0.113.0/24, is not in any of them.',
  )
  expect(sentence('unverifiable', { ...list, networks: 17, reason: 'old-list' })).toEndWith(
    'is not in any of them. The list was too old to contradict the claim.',
  )
  expect(sentence('unverifiable', { ...list, networks: 17, reason: 'user-triggered' })).toEndWith(
    'may come from elsewhere, so this contradicts nothing.',
  )
  expect(sentence('consistent', list)).toContain('fetches pages for people')
  expect(sentence('verified', { method: 'signature', keyId: 'k1' })).toBe(
    'The request is signed by OpenAI (key k1).',
  )
  expect(sentence('contradicted', { method: 'signature' })).toBe('The request is signed by another operator.')
  expect(sentence('verified', { method: 'dns' })).toEndWith('and it resolves back to the address.')
  expect(sentence('contradicted', { method: 'dns' })).toBe(
    'The host name of the address is not one of OpenAI.',
  )
  expect(sentence('unverifiable')).toBe('The claim cannot be checked.')
})

test('other verdicts have no sentence, and no field breaks it', () => {
  expect([verdictSentence({}), verdictSentence({ verdict: '' }), sentence('odd')]).toEqual([null, null, null])
  const verdict = fc.constantFrom(
    'verified',
    'consistent',
    'contradicted',
    'unverifiable',
    'unknown',
    'toString',
  )
  const evidence = fc.record(
    {
      method: fc.constantFrom('address', 'dns', 'signature', 1),
      list: fc.jsonValue(),
      networks: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(
      verdict,
      fc.oneof(evidence, fc.jsonValue()),
      fc.jsonValue(),
      (givenVerdict, proof, vendor) => {
        const text = verdictSentence({ verdict: givenVerdict, evidence: proof, vendor }, vendor)
        expect(text === null || typeof text === 'string').toBe(true)
        if (text !== null) expect(text).not.toContain('[object')
      },
    ),
  )
})
