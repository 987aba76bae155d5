/** What `doctor` says about the nodes of a shared database and their key file. */
import { expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { checkKeyFile, checkNodes } from './shared-checks.ts'
import type { Node, NodeReport } from '../../../db/contract/nodes.ts'

const now = Date.UTC(2026, 10, 23)
const healthy = { aheadMs: 3, queuedBytes: 0, queuedMs: 0, viewMs: 200, isEnding: false, problem: null }

function node(name: string, fields: Partial<Node> = {}, report: Partial<NodeReport> = {}): Node {
  const times = { startedAtMs: now - 60_000, seenAtMs: now - 3_000 }
  return {
    name,
    version: '1.0.0',
    schema: 1,
    role: 'all',
    ...times,
    report: { ...healthy, ...report },
    ...fields,
  }
}

const resultFor = (...nodes: Node[]) => {
  const { status, detail } = checkNodes({ nodes, storeMs: now })
  return [status, detail]
}

test('nodes: different versions, missing ones, clocks and problems', () => {
  expect(resultFor()).toEqual(['ok', 'No node runs.'])
  expect(resultFor(node('a'))).toEqual(['ok', '1 node runs, version 1.0.0.'])
  expect(resultFor(node('a'), node('b', { version: '1.1.0' }))).toEqual([
    'warning',
    '2 nodes run; they run different versions: 1.0.0, 1.1.0.',
  ])
  expect(resultFor(node('a'), node('b', { version: '0.9.0', seenAtMs: now - 190_000 }))).toEqual([
    'warning',
    '1 node runs; b was last seen 3 minutes ago.',
  ])
  expect(
    resultFor(node('a', {}, { aheadMs: -7_100 }), node('b', {}, { problem: 'disk: 3 MiB free' })),
  ).toEqual(['warning', '2 nodes run; the clock of a is off by -7 s; b: disk: 3 MiB free.'])
})

test('a key file that others can read shows every secret', () => {
  using dir = tempDir('key-file')
  const path = dir.join('keys')
  expect(checkKeyFile(null)).toBeNull()
  expect(checkKeyFile(path)?.status).toBe('failure')
  writeFileSync(path, '')
  for (const [mode, status] of [
    [0o600, 'ok'],
    [0o640, 'ok'],
    [0o644, 'failure'],
  ] as const) {
    chmodSync(path, mode)
    expect([mode, checkKeyFile(path)?.status]).toEqual([mode, status])
  }
})
