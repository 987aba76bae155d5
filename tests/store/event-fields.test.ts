/** The table of event fields agrees with itself, with the client package and with the columns that clients read. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { eventFields, filterableFields, recordFields, textFields } from '../../db/contract/event-fields.ts'
import { agentField, arrivalField, judgementField, vouchedField } from '../../db/sql/events/blocks/fields.ts'
import { csvColumns } from '../../server/api/traces/export.ts'
import { filterParameters } from '../../server/api/traces/filter.ts'
import { traceFilters } from '../../server/docs/gateway-model.ts'
import { checkEvent } from '../../server/ingest/check-event.ts'

test('numbers, names and CSV positions are unique', () => {
  const fieldNumbers = [agentField, judgementField, vouchedField, arrivalField]
  const numbers = [...eventFields.map(({ number }) => number), ...fieldNumbers, 14, 15, 16, 18, 19]
  expect(new Set(numbers).size).toBe(numbers.length)
  const places = eventFields.flatMap(({ csv }) => (csv === null ? [] : [csv]))
  expect(new Set(places).size).toBe(places.length)
  expect(new Set(eventFields.map(({ name }) => name)).size).toBe(eventFields.length)
})

test('CSV columns keep their positions; new ones come before the event', () => {
  const released =
    'id,siteId,sessionId,occurredAt,type,outcome,tool,durationMs,class,trust,vendor,decision,ruleId,'
  expect(csvColumns.join()).toStartWith(`${released}page,protocol,subject,error,name,purpose,verdict,`)
  expect(csvColumns.join()).toEndWith(',verdict,robots,door,key,observedBy,receivedAt,judgedBy,network,event')
})

test('every filterable field is a parameter, documented, and in the client package', () => {
  const names = filterableFields.map(({ name }) => (name === 'class' ? 'agentClass' : name))
  const client = readFileSync(new URL('../../sdk/gateway/gateway.ts', import.meta.url), 'utf8')
  for (const name of names) {
    expect(filterParameters[name]).toBe('many')
    expect(traceFilters).toHaveProperty([name])
    expect(client).toContain(`  ${name}?: Filter`)
  }
  expect(filterParameters['network']).toBe('many')
  expect(client).toContain('  network?: Filter')
})

test('validation reads every field at its path in the table, up to its longest value', () => {
  for (const { name, path, charsMax } of textFields) {
    const value = 'a'.repeat(charsMax)
    const [first, second] = path as readonly [string, string?]
    const member = second === undefined ? { [first]: value } : { [first]: { [second]: value } }
    const event = { id: 'e', siteId: 's', sessionId: 's', occurredAt: '2026-06-23T12:00:00Z', type: 'a.b' }
    const read = (fields: object) => checkEvent({ ...event, outcome: 'success', ...fields }, [])
    expect([name, read(member)?.[name as (typeof recordFields)[number]]]).toEqual([name, value])
    const longer = second === undefined ? { [first]: `${value}a` } : { [first]: { [second]: `${value}a` } }
    expect([name, read(longer)]).toEqual([name, null])
  }
})
