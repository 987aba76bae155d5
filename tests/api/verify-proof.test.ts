/** `sightglass verify FILE`: the executable verifies an exported proof and finds every kind of tampering. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { auditHash } from '../../db/contract/audit.ts'
import { cli } from '../support/binary.ts'
import { documentedVerifier } from '../support/proof-verifier.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

let dir: TempDir
let proof: string
let lines: string[]

beforeAll(async () => {
  dir = tempDir('proof-file')
  const dataDir = dir.join('data')
  const create = ['org', 'create', '--slug', 'acme', '--name', 'A line, "quotes", \\ and 🪟']
  expect((await cli(create, { dataDir })).code).toBe(0)
  for (const label of ['one', 'two', 'three'])
    await cli(['key', 'create', '--kind', 'ingest', '--org', 'acme', '--label', `${label} é\u0301`], {
      dataDir,
    })
  expect(
    (await cli(['export', 'audit', '--org', 'acme', '--proof', '--out', dir.join('p')], { dataDir })).code,
  ).toBe(0)
  proof = await Bun.file(dir.join('p')).text()
  lines = proof.trimEnd().split('\n')
}, 60_000)
afterAll(() => dir.remove())

interface Verdict {
  ok: boolean
  entries: number
  key: string
  orgId: string
  fault: { line: number; entryId: string | null; message: string } | null
}

let files = 0
async function verify(
  text: string | Uint8Array,
  ...extraArgs: string[]
): Promise<Verdict & { code: number }> {
  const path = dir.join(`proof-${++files}.jsonl`)
  writeFileSync(path, text)
  const { code, stdout } = await cli(['verify', path, '--json', ...extraArgs])
  return { code, ...(JSON.parse(stdout) as Verdict) }
}
const edited = (lineIndex: number, change: (row: { [member: string]: unknown }) => void): string => {
  const rows = lines.map((line) => JSON.parse(line) as { [member: string]: unknown })
  change(rows[lineIndex]!)
  return `${rows.map((row) => JSON.stringify(row)).join('\n')}\n`
}

test('a valid proof: exit 0, no data folder created, the same verdict as the documented verifier', async () => {
  using empty = tempDir('elsewhere')
  writeFileSync(empty.join('p.jsonl'), proof)
  const verified = await cli(['verify', 'p.jsonl'], { cwd: empty.path })
  expect([verified.code, verified.stderr]).toEqual([0, ''])
  expect(verified.stdout).toStartWith('p.jsonl: intact. 4 audit entries of org_')
  expect(existsSync(empty.join('sightglass-data'))).toBe(false)
  const verdict = await verify(proof)
  expect(verdict).toMatchObject({ code: 0, ok: true, entries: 4, fault: null })
  expect(await documentedVerifier(proof)).toStartWith('sound: 4 entries')
  expect(await verify(proof.trimEnd())).toMatchObject({ code: 0, ok: true })
  expect(await verify(proof.replaceAll('\n', '\r\n'))).toMatchObject({ code: 0, ok: true })
  expect(await verify(proof, `--trusted-key=${verdict.key}`)).toMatchObject({ code: 0 })
  expect(await verify(proof, '--trusted-key', 'x'.repeat(43))).toMatchObject({ code: 1, fault: { line: 1 } })
}, 60_000)

describe('an invalid proof: exit 1, with the first invalid line', () => {
  const spoiled: [string, () => string | Uint8Array, number][] = [
    ['an edited action', () => edited(2, (row) => (row['action'] = 'nothing.happened')), 3],
    ['edited metadata', () => edited(1, (row) => (row['metadata'] = '{}')), 2],
    ['a member that no hash covers', () => edited(2, (row) => (row['note'] = 'approved by the board')), 3],
    [
      'the same in the head',
      () => edited(0, (row) => ((row['head'] as Record<string, unknown>)['note'] = 1)),
      1,
    ],
    ['a number where text belongs', () => edited(3, (row) => (row['position'] = 3)), 4],
    ['a missing member', () => edited(3, (row) => delete row['target']), 4],
    ['an entry taken out', () => lines.toSpliced(2, 1).join('\n'), 3],
    ['two entries exchanged', () => lines.with(2, lines[3]!).with(3, lines[2]!).join('\n'), 3],
    ['an entry twice', () => [...lines, lines.at(-1)!].join('\n'), 6],
    ['the last entry cut off', () => lines.slice(0, -1).join('\n'), 4],
    ['a line cut in the middle', () => proof.slice(0, -40), 5],
    ['a head of another count', () => edited(0, (row) => ((row['head'] as { count: number }).count = 3)), 1],
    ['an empty file', () => '', 1],
    ['an empty line', () => lines.toSpliced(2, 0, '').join('\n'), 3],
    ['the head alone, null', () => 'null\n', 1],
    ['a CSV export', () => 'id,orgId,actor\n', 1],
    ['bytes that are no text', () => new Uint8Array([0xff, 0xfe, 0x00, 0x0a]), 1],
    ['an endless line', () => `{"format":"${'x'.repeat(9 * 1024 * 1024)}`, 1],
    ['a history written anew, signed by another key', () => forged(), 1],
  ]
  for (const [caseName, spoil, line] of spoiled) {
    test(
      caseName,
      async () => {
        const trusted = (JSON.parse(lines[0]!) as { head: { key: string } }).head.key
        const verdict = await verify(spoil(), `--trusted-key=${trusted}`)
        expect(verdict).toMatchObject({ code: 1, ok: false, fault: { line } })
        expect(verdict.fault!.message.length).toBeGreaterThan(10)
      },
      30_000,
    )
  }
})

/** A consistent chain, made without the appliance's key. */
function forged(): string {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const rows = lines
    .slice(1)
    .map((line) => JSON.parse(line) as Parameters<typeof auditHash>[0] & { hash: string })
  let prevHash = '0'.repeat(64)
  for (const row of rows) {
    row.actor = 'user:somebody-else'
    row.prevHash = prevHash
    prevHash = row.hash = auditHash(row)
  }
  const { head } = JSON.parse(lines[0]!) as { head: { orgId: string; count: number; at: string } }
  const text = JSON.stringify(['sightglass-audit-head-1', head.orgId, head.count, prevHash, head.at])
  const signature = sign(null, Buffer.from(text), privateKey).toString('base64url')
  const signed = { ...head, hash: prevHash, key: publicKey.export({ format: 'jwk' }).x, signature }
  const first = { format: 'sightglass-audit-proof-1', head: signed }
  return [first, ...rows].map((row) => JSON.stringify(row)).join('\n')
}

test('a forged history is consistent; only its key differs', async () => {
  expect(await verify(forged())).toMatchObject({ code: 0, ok: true })
}, 30_000)

test('wrong usage is exit 2, a file that cannot be read exit 1', async () => {
  expect(await cli(['verify', 'everything'])).toMatchObject({ code: 2 })
  expect(await cli(['verify', 'audit', '--trusted-key', 'x'])).toMatchObject({ code: 2 })
  expect(await cli(['verify', dir.join('nothing.jsonl')])).toMatchObject({ code: 1, stdout: '' })
  const folder = await cli(['verify', dir.path])
  expect([folder.code, folder.stderr]).toEqual([1, expect.stringContaining('is not a file')])
}, 60_000)
