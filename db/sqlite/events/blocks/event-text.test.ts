/** An event's text survives removing its id and session, wherever they are and whatever they contain. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { joinText, splitText } from './bodies.ts'

function comesBack(json: string, id: string, session: string): ReturnType<typeof splitText> {
  const parts = splitText(json, JSON.stringify(id), JSON.stringify(session))
  expect(joinText(parts, JSON.stringify(id), JSON.stringify(session))).toBe(json)
  return parts
}

test('both are taken out in either order', () => {
  const { text } = comesBack('{"id":"evt_1","sessionId":"ses_1","n":1}', 'evt_1', 'ses_1')
  expect(text).toBe('{"id":,"sessionId":,"n":1}')
  expect(comesBack('{"sessionId":"ses_1","id":"evt_1"}', 'evt_1', 'ses_1').text).toBe('{"sessionId":,"id":}')
})

test('a value that is not the first of its name stays', () => {
  const json = '{"a":{"id":"other"},"id":"evt_1"}'
  expect(comesBack(json, 'evt_1', 'ses_1')).toEqual({ text: json, idAt: 0, sessionAt: 0 })
})

test('any object comes back, with any members named alike', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('', '"', '"id":', '\\', 'e', '"sessionId":"x"'))
  const member = fc.tuple(fc.constantFrom('id', 'sessionId', 'x', '"id":'), fc.oneof(text, fc.object()))
  fc.assert(
    fc.property(fc.array(member), text, text, fc.boolean(), (members, id, session, spaced) => {
      const all = Object.fromEntries([...members, ['id', id], ['sessionId', session]])
      comesBack(JSON.stringify(all, null, spaced ? 1 : 0), id, session)
      comesBack(JSON.stringify(Object.fromEntries(members)), id, session)
    }),
    { numRuns: 500 },
  )
})
