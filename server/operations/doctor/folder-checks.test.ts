/** The doctor's checks: the thresholds of warnings and failures, and their messages. */
import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, statfsSync, writeFileSync } from 'node:fs'
import type { Checkup } from '../../../db/contract/operations.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { writeLastRun, writeProof } from '../backup/backup-folder.ts'
import {
  checkBackups,
  checkClock,
  checkDisk,
  checkFiles,
  checkFolder,
  checkIntegrity,
  checkKeys,
  checkLog,
  checkSchema,
} from './folder-checks.ts'
import { checkProxies, checkReach } from './options.ts'

const now = Date.UTC(2026, 5, 23, 12)
const mebibyte = 1024 * 1024
const facts = { schema: 5, events: 1_000_000, orgs: 1, accounts: 1, keys: 1, auditHeads: {} }
const well: Checkup = {
  facts,
  engine: 'SQLite 3.54.1',
  bytes: 200 * mebibyte,
  logBytes: 0,
  problems: [],
  findings: [],
  nodes: [],
  storeMs: now,
  eventsLastWeek: 0,
  newestAuditAtMs: now - 1_000,
  auditEvidence: { recorded: null, stored: 0, losses: [] },
  evidence: null,
  keys: { live: 2, exposed: 0, endingSoon: 0, idle: 0 },
}

test('the database: corruption, a long log, a clock that was set back', () => {
  expect(checkIntegrity(well).status).toBe('ok')
  expect(checkIntegrity({ ...well, problems: ['page 7 is never used'] })).toMatchObject({ status: 'failure' })
  expect(checkIntegrity({ ...well, problems: null }).detail).toContain('too large for a quick check')
  const sizes = [0, 256, 257, 1024, 1025].map(
    (size) => checkLog({ ...well, logBytes: size * mebibyte })?.status,
  )
  expect(sizes).toEqual(['ok', 'ok', 'warning', 'warning', 'failure'])
  expect(checkClock(well, now).status).toBe('ok')
  expect(checkClock({ ...well, newestAuditAtMs: now + 600_000 }, now).status).toBe('warning')
  expect(checkClock(well, Date.UTC(2001, 0)).status).toBe('failure')
})

test('the schema: current, older, newer', () => {
  const state = { applied: [], pending: [], isNewer: false }
  expect(checkSchema({ ...state, version: 5, newest: 5 }).status).toBe('ok')
  const pending = [{ version: 5, name: 'x' }]
  expect(checkSchema({ ...state, version: 4, newest: 5, pending })).toMatchObject({ status: 'warning' })
  expect(checkSchema({ ...state, version: 6, newest: 5, isNewer: true })).toMatchObject({ status: 'failure' })
  expect(checkSchema({ ...state, version: 6, newest: 5 })).toMatchObject({ status: 'ok' })
})

test('keys: leaked ones fail; expiring and unused ones are warnings', () => {
  expect(checkKeys(well).status).toBe('ok')
  expect(checkKeys({ ...well, keys: { ...well.keys, idle: 1 } })).toMatchObject({ status: 'warning' })
  const finding = checkKeys({ ...well, keys: { live: 3, exposed: 1, endingSoon: 1, idle: 1 } })
  expect(finding).toMatchObject({ status: 'failure', detail: expect.stringContaining('leaked') })
})

test('the disk forecast uses the rate of the last 7 days', async () => {
  using dir = tempDir('disk')
  expect((await checkDisk(dir.path, Number.MAX_SAFE_INTEGER, well)).status).toBe('failure')
  expect((await checkDisk(dir.path, 0, well)).detail).not.toContain('fills up')
  const quiet = await checkDisk(dir.path, 0, { ...well, bytes: 1, eventsLastWeek: 7 })
  expect(quiet.detail).toEndWith('fills up in more than 10 years.')
  // An event takes a megabyte, and what is free is enough for two hundred such days.
  const { bavail, bsize } = statfsSync(dir.path)
  const facts = { ...well.facts, events: 20_000 }
  const eventsLastWeek = (7 * bavail * bsize) / 200e6
  const busy = await checkDisk(dir.path, 0, { ...well, bytes: 20_000 * 1e6, facts, eventsLastWeek })
  const days = Number(/fills up in (\d+) days/.exec(busy.detail)?.[1])
  expect(days > 180 && days < 220, busy.detail).toBe(true)
  const rushing = await checkDisk(dir.path, 0, { ...well, eventsLastWeek: 1e12 })
  expect(rushing).toMatchObject({ status: 'warning', detail: expect.stringContaining('fills up in 0 days') })
})

test('the folder and its files are accessible to their owner only', () => {
  using dir = tempDir('folder')
  writeFileSync(dir.join('secret.key'), 'x', { mode: 0o600 })
  expect([checkFolder(dir.path).status, checkFiles(dir.path).status]).toEqual(['ok', 'ok'])
  chmodSync(dir.join('secret.key'), 0o604)
  expect(checkFiles(dir.path)).toMatchObject({
    status: 'warning',
    detail: expect.stringContaining('secret.key'),
  })
  chmodSync(dir.path, 0o750)
  expect(checkFolder(dir.path)).toMatchObject({ status: 'failure', hint: `chmod 700 ${dir.path}` })
})

test('without TLS: ok on loopback or behind a trusted proxy, otherwise a warning', () => {
  const reach = (host: string, publicUrl: string | null, trustedProxies: string[] = [], hasTls = false) => {
    const reached = { listen: { host, port: 7400 }, publicUrl, trustedProxies }
    return [checkReach(reached, hasTls).status, checkProxies(reached, hasTls).status]
  }
  expect(reach('127.0.0.1', null)).toEqual(['ok', 'ok'])
  expect(reach('0.0.0.0', null)).toEqual(['warning', 'ok'])
  expect(reach('0.0.0.0', null, [], true)).toEqual(['ok', 'ok'])
  expect(reach('0.0.0.0', 'https://a.example', ['10.0.0.1'])).toEqual(['ok', 'ok'])
  expect(reach('127.0.0.1', 'https://a.example')).toEqual(['ok', 'warning'])
  expect(reach('127.0.0.1', null, ['::/0'])).toEqual(['ok', 'failure'])
})

test('backups: none, failed, repeated successfully, corrupt', async () => {
  using dir = tempDir('backups')
  const folder = dir.join('b')
  expect((await checkBackups(folder, now)).status).toBe('warning')
  mkdirSync(folder)
  const isoTime = (hours: number) => new Date(now + hours * 3_600_000).toISOString()
  await writeLastRun(folder, { at: isoTime(-2), ok: false, name: null, message: 'no space' })
  expect(await checkBackups(folder, now)).toMatchObject({
    status: 'failure',
    detail: expect.stringContaining('no space'),
  })
  writeFileSync(`${folder}/x.backup`, 'not one')
  await writeProof(`${folder}/x.backup`, { sha256: '', provenAt: isoTime(-1) })
  expect(await checkBackups(folder, now)).toMatchObject({
    status: 'failure',
    detail: expect.stringContaining('damaged'),
  })
})
