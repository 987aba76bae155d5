/** The sample commands of the dashboard send whole, current events. */
import { expect, test } from 'bun:test'
import { importLogCommand, type SampleKind, sampleBody, sampleType } from './copy.tsx'

interface Sample {
  events: [
    {
      id: string
      occurredAt: string
      type: string
      agent: { vendor: string; name: string; purpose?: string }
    },
  ]
}

test.each<SampleKind>(['agent', 'auth', 'authz', 'tool', 'memory'])('%s: an event of now', (kind) => {
  const nowMs = Date.UTC(2026, 10, 22, 12)
  const { events } = JSON.parse(sampleBody(kind, nowMs)) as Sample
  expect(events[0]).toMatchObject({ occurredAt: '2026-11-22T12:00:00.000Z', type: sampleType(kind) })
  expect(events[0].agent.name).not.toBe(events[0].agent.vendor)
  const widest = Math.max(
    ...sampleBody(kind, nowMs)
      .split('\n')
      .map(({ length }) => length),
  )
  expect(widest).toBeLessThan(88) // what an empty page shows without scrolling
})

test('the command that imports a log has the paths of the server, in quotes where a shell needs them', () => {
  const first = { executable: 'sightglass', dataDir: null, org: null, log: '/var/log/nginx/access.log' }
  expect(importLogCommand(first)).toBe('sightglass import access /var/log/nginx/access.log --site my-site')
  const odd = { executable: "/opt/it's/sightglass", dataDir: '/srv/my data', org: 'acme', log: '/l/$(x).log' }
  expect(importLogCommand(odd)).toBe(
    `'/opt/it'\\''s/sightglass' import access '/l/$(x).log' --site my-site \\\n` +
      "  --org acme \\\n  --data-dir '/srv/my data'",
  )
})
