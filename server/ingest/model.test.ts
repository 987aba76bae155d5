/** The published OpenAPI schema and the handwritten checks agree on everything that a schema can express. */
import { expect, test } from 'bun:test'
import { getSchemaValidator } from 'elysia'
import fc from 'fast-check'
import { changedEvent, validEvent } from '../../tests/fuzz/any-event.ts'
import { exampleEvent } from '../../tests/support/events.ts'
import type { Issue } from '../errors.ts'
import { checkEvent } from './check-event.ts'
import { eventModel, eventsBodyModel } from './model.ts'

const schema = getSchemaValidator(eventModel, { normalize: false })

const isTaken = (event: unknown): boolean => checkEvent(event, []) !== null

/** A JSON Schema pattern cannot know the calendar: such an event may fail by hand and pass the schema. */
function failsOnlyByCalendar(event: unknown): boolean {
  const issues: Issue[] = []
  checkEvent(event, issues)
  return issues.length > 0 && issues.every((issue) => issue.path === 'occurredAt')
}

test('both accept every valid event', () => {
  fc.assert(
    fc.property(validEvent, (event) => {
      expect(isTaken(event)).toBe(true)
      expect(schema.Check(event)).toBe(true)
    }),
    { numRuns: 1_000 },
  )
  expect(schema.Check(exampleEvent)).toBe(true)
})

test('both reject the same mutated events', () => {
  let refused = 0
  fc.assert(
    fc.property(changedEvent, (changed) => {
      const event: unknown = JSON.parse(JSON.stringify(changed))
      const isAccepted = isTaken(event)
      if (!isAccepted) refused++
      expect(schema.Check(event) && !failsOnlyByCalendar(event)).toBe(isAccepted)
    }),
    { numRuns: 2_000 },
  )
  expect(refused).toBeGreaterThan(400) // else the property above says little
})

test('both reject anything but an object', () => {
  for (const event of [null, undefined, 1, 'x', true, [], [exampleEvent]]) {
    expect(isTaken(event)).toBe(false)
    expect(schema.Check(event)).toBe(false)
  }
})

test('both reject numbers that are not finite', () => {
  for (const event of [
    { ...exampleEvent, durationMs: Number.POSITIVE_INFINITY },
    { ...exampleEvent, agent: { confidence: Number.POSITIVE_INFINITY } },
  ]) {
    expect(isTaken(event)).toBe(false)
    expect(schema.Check(event)).toBe(false)
  }
})

test('a body is a list of 1 to 1,000 events', () => {
  const body = getSchemaValidator(eventsBodyModel, { normalize: false })
  const events = (count: number) => ({ events: Array.from({ length: count }, () => exampleEvent) })
  expect([0, 1, 1_000, 1_001].map((count) => body.Check(events(count)))).toEqual([false, true, true, false])
})
