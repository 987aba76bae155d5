/** The command line exports an audit trail as the API does: newest first, the same lines with the same line ends. */
import { expect, test } from 'bun:test'
import { makeAudit } from '../store/make.ts'
import { cli } from '../support/binary.ts'
import { openTestFolder } from '../support/engine.ts'
import { tempDir } from '../support/temp-dir.ts'

const orgId = 'org_long'
const rows = 1_003 // more than a page

test('a trail of several pages is exported newest first, each entry once, as JSON and as CSV', async () => {
  using dir = tempDir('audit-order')
  const store = await openTestFolder(dir.path, { now: () => Date.UTC(2026, 5, 23) })
  const entries = Array.from({ length: rows }, (_, index) => makeAudit(orgId, { target: `thing_${index}` }))
  await Promise.all(entries.map((entry) => store.audit.append(entry)))
  await store.close()
  const expected = Array.from({ length: rows }, (_, index) => `thing_${rows - 1 - index}`)

  const json = await cli(['export', 'audit', '--org', orgId], { dataDir: dir.path })
  const trail = JSON.parse(json.stdout) as { entries: { target: string }[]; count: number }
  expect(trail.entries.map(({ target }) => target)).toEqual([orgId, ...expected])
  expect(trail.count).toBe(rows + 1)

  const csv = await cli(['export', 'audit', '--org', orgId, '--format', 'csv'], { dataDir: dir.path })
  const [head = '', ...lines] = csv.stdout.split('\n')
  expect(head).toBe('id,orgId,actor,action,target,metadata,occurredAt')
  expect(lines.pop()).toBe('')
  expect(lines.map((line) => line.split(',')[4])).toEqual([orgId, orgId, ...expected])

  const proof = await cli(['export', 'audit', '--org', orgId, '--proof'], { dataDir: dir.path })
  const chain = proof.stdout.trimEnd().split('\n').slice(1)
  expect(chain.map((line) => Number(JSON.parse(line).position))).toEqual(
    Array.from({ length: rows + 3 }, (_, index) => index + 1),
  )
}, 90_000)
