/** Proves for every rule of the house that it finds what it forbids and leaves alone what it allows. */
import { expect, test } from 'bun:test'
import { bothEngines } from './both-engines.ts'
import { deadFiles, dependencyRules, missingDocuments } from './house-rules.ts'
import { barrel, cycles, importRules } from './import-rules.ts'
import { importsOf } from './imports.ts'
import { engineWordsIn } from './engine-words.ts'
import { deadExports } from './exports.ts'
import { missingPlaces, mutualImports, upwardImports } from './layers.ts'
import { insideImports } from './modules.ts'
import { packedLines, vagueNames } from './plain-code.ts'
import { slivers } from './slivers.ts'
import { userStrings } from './user-strings.ts'
import { words } from './words.ts'
import { blank, type Finding, type Source } from './source.ts'
import { bannedCode, fileName, header, leftovers, lineLength } from './text-rules.ts'

const source = (path: string, text: string): Source => ({ path, text })
const rulesOf = (findings: Finding[]): string[] => findings.map((finding) => finding.rule)
const imports = (path: string, ...lines: string[]) => importsOf(source(path, lines.join('\n')))

test('comments and strings are blanked, code inside templates is not', () => {
  const text = "a('b') // c\n/* d */ `e ${f('g')} h` + /i'/.x + 4 / 2"
  expect(blank(text, { strings: true })).toBe("a(' ')     \n        `  ${f(' ')}  ` + /  /.x + 4 / 2")
  expect(blank(text, { strings: false })).toBe("a('b')     \n        `e ${f('g')} h` + /i'/.x + 4 / 2")
})

test('both engines', () => {
  const path = 'tests/api/a.test.ts'
  const findingsFor = (text: string, tests: string[] = [], files: string[] = []) => {
    const reasons = (names: string[]) => Object.fromEntries(names.map((name) => [name, 'because']))
    const lists = { files: reasons(files), tests: tests.length > 0 ? { [path]: reasons(tests) } : {} }
    return rulesOf(bothEngines([source(path, text)], lists))
  }
  expect(findingsFor("test('a', () => {})")).toEqual([])
  expect(findingsFor("folderTest('a', () => {})", ['a'])).toEqual([])
  expect(findingsFor("folderTest('a', () => {})")).toEqual(['both-engines'])
  expect(findingsFor("test('a', () => {})", ['a'])).toEqual(['both-engines'])
  expect(findingsFor("open('sightglass.db')")).toEqual(['both-engines'])
  expect(findingsFor("open('sightglass.db')", [], [path])).toEqual([])
  expect(findingsFor('', [], ['tests/api/gone.test.ts'])).toEqual(['both-engines'])
})

test('header', () => {
  for (const good of ['/** Signs requests. */\n', '/**\n * Signs requests,\n * and more.\n */\n']) {
    expect(header(source('server/a.ts', good))).toEqual([])
  }
  for (const bad of [
    '',
    'let a = 1\n',
    '/** sign */\n',
    '/** Signs requests without a stop */\n',
    '\n/** Late one. */',
  ]) {
    expect(rulesOf(header(source('server/a.ts', bad)))).toEqual(['header'])
  }
  expect(header(source('db/sqlite/migrations/1.sql', '-- Tables of the first release.\n'))).toEqual([])
  expect(rulesOf(header(source('db/sqlite/migrations/1.sql', 'CREATE TABLE a(b);\n')))).toEqual(['header'])
})

test('line-length', () => {
  expect(lineLength(source('a.ts', 'x'.repeat(120)))).toEqual([])
  expect(lineLength(source('a.ts', `const a = '${'x y '.repeat(50)}'`))).toEqual([])
  expect(rulesOf(lineLength(source('a.ts', `// ${'x y '.repeat(50)}`)))).toEqual(['line-length'])
  expect(lineLength(source('a.ts', `ok\n${'x'.repeat(121)}`))).toMatchObject([
    { rule: 'line-length', line: 2 },
  ])
})

test('file-name', () => {
  for (const good of [
    'server/rate-limit.ts',
    'README.md',
    'db/sqlite/migrations/0001_init.sql',
    '.npmrc.json',
  ]) {
    expect(fileName(source(good, ''))).toEqual([])
  }
  const bad = [
    'server/rateLimit.ts',
    'server/rate_limit.ts',
    'server/index.ts',
    'server/utils/a.ts',
    'web/key-manager.ts',
  ]
  for (const path of bad) expect(rulesOf(fileName(source(path, '')))).toEqual(['file-name'])
})

test.each([
  ['environment', 'server/a.ts', 'const a = process.env.HOME', 'server/system/environment.ts'],
  ['environment', 'db/a.ts', 'const a = Bun.env.HOME', 'scripts/a.ts'],
  ['time', 'server/a.ts', 'const a = Date.now()', 'server/clock.ts'],
  ['time', 'sdk/a.ts', 'const a = new Date()', 'tests/a.ts'],
  ['random', 'server/a.ts', 'const a = randomUUID()', 'server/ids.ts'],
  ['random', 'db/a.ts', 'const a = randomBytes(8)', 'db/a.test.ts'],
  ['console', 'web/a.ts', 'console.log(1)', 'server/cli/a.ts'],
  ['stored-json', 'server/a.ts', 'const a = JSON.parse(stored.json)', 'db/a.ts'],
  ['awaited-by-expect', 'server/a.test.ts', 'await expect(a()).rejects.toThrow(b)', 'server/a.ts'],
])('%s in %s', (rule, path, text, allowed) => {
  expect(rulesOf(bannedCode(source(path, text)))).toEqual([rule])
  expect(bannedCode(source(allowed, text))).toEqual([])
  expect(bannedCode(source(path, `// ${text}\nconst b = "${text}"`))).toEqual([])
})

test.each([
  ['any', 'let a: any = 1', 'let a: unknown = { any: 1 }'],
  ['any', 'const a = b as any', 'const a = b.any'],
  ['any', 'let a: Map<string, any>', 'let many: Map<string, Company>'],
  ['enum', 'export enum A {}', "type A = 'enum'"],
  ['namespace', 'export namespace A {', 'const namespace = 1'],
  ['focus', "test.only('a', () => {})", "test('only', () => {})"],
  ['focus', "describe.skip('a', () => {})", 'list.skip(2)'],
  ['class', 'class Sender {', 'class SendError extends Error {'],
  ['empty-name', 'function makeKeyManager() {', 'function manageKeys() {'],
  ['type-escape', `// @ts-${'ignore'}`, '// @ts-expect-error wrong on purpose'],
])('%s: %s', (rule, bad, good) => {
  expect(rulesOf(bannedCode(source('server/a.ts', bad)))).toEqual([rule])
  expect(bannedCode(source('server/a.ts', good))).toEqual([])
})

test('leftover', () => {
  expect(rulesOf(leftovers(source('README.md', `later: ${'TO'}${'DO'}`)))).toEqual(['leftover'])
  expect(leftovers(source('README.md', 'to do'))).toEqual([])
})

test.each([
  ['db-alone', 'db/a.ts', "import type { B } from '../server/b.ts'", "import { B } from './b.ts'"],
  ['sdk-alone', 'sdk/a.ts', "import { b } from '../server/b.ts'", "import { b } from './b.ts'"],
  [
    'web-types-only',
    'web/a.ts',
    "import type { B } from '../server/b.ts'",
    "import type { B } from './api.ts'",
  ],
  [
    'web-types-only',
    'web/api/below/a.ts',
    "import type { B } from '../../../server/b.ts'",
    "import type { B } from '../api.ts'",
  ],
  [
    'web-types-only',
    'web/api/key-api.ts',
    "import { b } from '../../server/b.ts'",
    "import type { B } from '../../server/b.ts'",
  ],
  [
    'engine-behind-seam',
    'server/a.ts',
    "import { b } from '../db/sqlite/b.ts'",
    "import { b } from '../db/open.ts'",
  ],
  ['server-alone', 'server/a.ts', "import { b } from '../web/b.ts'", "import { b } from './b.ts'"],
  ['elysia', 'server/a/b.ts', "import { t } from 'elysia'", "import { t } from './elysia.ts'"],
  ['driver', 'db/a.ts', "import { Database } from 'bun:sqlite'", "import { test } from 'bun:test'"],
  ['driver', 'server/a.ts', "import { sql } from 'drizzle-orm/sql'", "import { sql } from './sql.ts'"],
  ['extension', 'server/a.ts', "import { b } from './b'", "import { b } from './b.json'"],
])('%s in %s', (rule, path, bad, good) => {
  expect(rulesOf(importRules(imports(path, bad)))).toEqual([rule])
  expect(importRules(imports(path, good))).toEqual([])
})

test('elysia is allowed where HTTP is spoken', () => {
  for (const path of [
    'server/app.ts',
    'server/identity/keys/routes.ts',
    'server/identity/keys/model.ts',
    'server/http/guard.ts',
  ]) {
    expect(importRules(imports(path, "import { Elysia } from 'elysia'"))).toEqual([])
  }
})

test('imports are found in every form, and types are told from values', () => {
  const lines = [
    "import {\n  type A,\n  b,\n} from './a.ts'",
    "import './b.css'",
    "export type { C } from './c.ts'",
    "const d = await import('./d.ts')",
    "import { type E, type F } from './e.ts'",
    "// import { g } from './g.ts'",
  ]
  const edges = imports('web/x.ts', ...lines).map((edge) => [edge.to, edge.typeOnly])
  const expected = [
    ['web/a.ts', false],
    ['web/b.css', false],
    ['web/c.ts', true],
    ['web/d.ts', false],
    ['web/e.ts', true],
  ]
  expect(edges.toSorted()).toEqual(expected)
})

test('cycle', () => {
  const a = imports('server/a.ts', "import { b } from './b.ts'")
  const b = imports('server/b.ts', "import type { c } from './c.ts'")
  const c = imports('server/c.ts', "import { a } from './a.ts'")
  expect(cycles([...a, ...b])).toEqual([])
  expect(cycles([...a, ...b, ...c])).toMatchObject([{ rule: 'cycle', path: 'server/a.ts' }])
})

test('barrel', () => {
  const text = "/** All of it. */\nexport { a } from './a.ts'\nexport * from './b.ts'\n"
  expect(rulesOf(barrel(source('server/all.ts', text), imports('server/all.ts', text)))).toEqual(['barrel'])
  const longerText = `${text}export const c = 1\n`
  expect(barrel(source('server/all.ts', longerText), imports('server/all.ts', longerText))).toEqual([])
})

test('dead-file', () => {
  const files = [
    source('server/main.ts', "import './used.ts'\nnew Worker(new URL('./thread.ts', import.meta.url))"),
    source('server/used.ts', ''),
    source('server/thread.ts', ''),
    source('server/dead.ts', "import './also-dead.ts'"),
    source('server/also-dead.ts', ''),
    source('server/tested.test.ts', "import { a } from './tested.ts'"),
    source('server/tested.ts', ''),
  ]
  expect(deadFiles(files, ['server/main.ts']).map(({ path }) => path)).toEqual([
    'server/dead.ts',
    'server/also-dead.ts',
  ])
})

test('dependency', () => {
  const usedImports = imports('web/a.ts', "import { a } from 'good/part'", "import b from 'node:fs'")
  const manifest = { dependencies: { good: '1.2.3' }, packageManager: 'bun@1.4.5' }
  const design = '| `good`   | for the proof |'
  const messages = (...args: Parameters<typeof dependencyRules>): string[] =>
    dependencyRules(...args).map(({ message }) => message)
  expect(messages(manifest, design, usedImports)).toEqual([])
  expect(messages({ ...manifest, dependencies: { good: '^1.2.3' } }, design, usedImports)).toEqual([
    'good is not pinned',
  ])
  for (const empty of ['', '| `good` |  |', 'good']) {
    expect(messages(manifest, empty, usedImports)).toEqual(['good is not justified'])
  }
  expect(messages(manifest, design, [])).toEqual(['good is used nowhere'])
  expect(messages({ ...manifest, dependencies: {} }, design, usedImports)).toEqual([
    'good/part is not in package.json',
  ])
  expect(messages({ dependencies: { good: '1.2.3' } }, design, usedImports)).toEqual([
    'packageManager is not pinned',
  ])
})

test('document', () => {
  const missing = missingDocuments(new Set(['README.md'])).map(({ path }) => path)
  expect(missing).not.toContain('README.md')
  expect(missing).toContain('server/DESIGN.md')
})

test('sliver: a small file with one importer, tests not counted', () => {
  const importer = imports('server/b.ts', "import { a } from './a.ts'")
  const tested = imports('server/a.test.ts', "import { a } from './a.ts'")
  const second = imports('server/c.ts', "import { a } from './a.ts'")
  const small = source('server/a.ts', 'x\n'.repeat(59))
  expect(rulesOf(slivers([small], [...importer, ...tested]))).toEqual(['sliver'])
  expect(slivers([small], [...importer, ...second])).toEqual([])
  expect(slivers([source('server/a.ts', 'x\n'.repeat(60))], importer)).toEqual([])
  const thread = 'db/sqlite/threads/reader.ts'
  const starter = imports('db/sqlite/threads/threads.ts', "import type { A } from './reader.ts'")
  expect(slivers([source(thread, 'x\n')], starter)).toEqual([])
})

test.each([
  ['server/http/a.ts', "import type { B } from '../cli/b.ts'", "import { b } from '../text/b.ts'"],
  ['server/audit/a.ts', "import { b } from '../services.ts'", "import { b } from '../identity/b.ts'"],
  ['server/identity/a.ts', "import type { B } from '../mcp/b.ts'", "import { b } from '../audit/b.ts'"],
  ['db/sql/events/read/a.ts', "import { b } from '../../copy/b.ts'", "import { b } from '../../database.ts'"],
  ['db/contract/a.ts', "import { b } from '../rules/b.ts'", "import { b } from './b.ts'"],
  ['web/charts/a.ts', "import { b } from '../pages/b.ts'", "import { b } from '../text/b.ts'"],
])('upward in %s', (path, bad, good) => {
  expect(rulesOf(upwardImports(imports(path, bad)))).toEqual(['upward'])
  expect(upwardImports(imports(path, good))).toEqual([])
  expect(upwardImports(imports(path.replace('.ts', '.test.ts'), bad))).toEqual([])
})

test('mutual: two rooms import each other, types included; a listed file is a room of its own', () => {
  const down = imports('server/mcp/a.ts', "import { b } from '../api/live/b.ts'")
  const up = imports('server/api/live/c.ts', "import type { D } from '../../mcp/d.ts'")
  expect(mutualImports([...down, ...down])).toEqual([])
  expect(mutualImports([...up, ...down]).map(({ path, rule }) => [path, rule])).toEqual([
    ['server/api/live/c.ts', 'mutual'],
  ])
  const nested = imports('server/mcp/inside/a.ts', "import { b } from '../b.ts'")
  const outer = imports('server/mcp/c.ts', "import { a } from './inside/a.ts'")
  expect(rulesOf(mutualImports([...nested, ...outer]))).toEqual(['mutual'])
  const app = imports('server/app.ts', "import { a } from './mcp/a.ts'")
  const errors = imports('server/mcp/a.ts', "import { b } from '../errors.ts'")
  expect(mutualImports([...app, ...errors])).toEqual([])
  const tested = imports('server/api/live/c.test.ts', "import type { D } from '../../mcp/d.ts'")
  expect(mutualImports([...tested, ...down])).toEqual([])
})

test('a layer that no file has any more is found', () => {
  expect(missingPlaces(['server/main.ts']).map(({ path }) => path)).not.toContain('server/main.ts')
  expect(missingPlaces(['server/main.ts']).map(({ path }) => path)).toContain('server/cli')
})

test('user-facing strings are prose of strings, templates and JSX, without code and class names', () => {
  const text = [
    "const a = 'No events yet. Add one.'",
    "const b = 'server/http/listener.ts'",
    'const c = `Newest ${list.map((x) => `${x}`)} sessions`',
    "const d = 'SELECT id FROM event'",
    'const e = <p class="panel wide">Deleted <b>for good</b>, {n} of them</p>',
    '// a comment of words',
  ].join('\n')
  expect(
    userStrings(source('web/a.tsx', text)).map((userString) => `${userString.line} ${userString.text}`),
  ).toEqual(['1 No events yet. Add one.', '3 Newest … sessions', '5 for good'])
  expect(userStrings(source('web/a.test.tsx', text))).toEqual([])
})

test('dead-export: functions and values that no other file imports', () => {
  const text = 'export function a() {}\nexport const b = 1\nexport interface C {}\nconst d = 2\n'
  const user = source('server/user.ts', "import { a, type C } from './a.ts'")
  const findDead = (...otherSources: Source[]) =>
    deadExports([source('server/a.ts', text), ...otherSources], () => false)
  expect(findDead(user).map(({ line }) => line)).toEqual([2])
  expect(findDead(source('server/lazy.ts', "const all = await import('./a.ts')"))).toEqual([])
  expect(deadExports([source('server/a.ts', text)], () => true)).toEqual([])
})

test('words: what the glossary avoids, in texts that people read', () => {
  expect(rulesOf(words(source('web/a.ts', "const a = 'Rules that speak of it'")))).toEqual(['words'])
  expect(words(source('web/a.ts', "const a = 'Alert rules of this organization' // told"))).toEqual([])
})

test('engine-words: names, file names and texts of one engine, outside of its folder', () => {
  const engineWordsFor = (path: string, text = '') =>
    engineWordsIn(source(path, text)).map(({ message }) => message)
  for (const [text, word] of [
    ['/** Keys in SQLite. */', 'SQLite'],
    ['const path = `${folder}/sightglass.db-wal`', 'sightglass.db-wal'],
    ['const { walBytes } = checkup', 'walBytes'],
    ['limitWal(db)', 'limitWal'],
    ["db.run('PRAGMA optimize')", 'PRAGMA'],
    ['openPostgresStore(url)', 'openPostgresStore'],
    ["'SELECT pg_advisory_lock(1)'", 'pg_advisory_lock'],
  ] as const)
    expect(engineWordsFor('server/a.ts', text)).toEqual([`"${word}" is a word of one engine`])
  expect(engineWordsFor('db/sql/sqlite-page.ts')).toEqual(['"sqlite-page" is a word of one engine'])
  expect(engineWordsFor('server/a.ts', 'const wallMs = walls + walk + sightglass.dbs')).toEqual([])
  for (const path of ['db/sqlite/a.ts', 'db/postgres/a.ts', 'server/a.test.ts', 'server/guide/operations.md'])
    expect(engineWordsFor(path, 'SQLite')).toEqual([])
})

test('module: other folders import the entries of a folder, and every entry is used', () => {
  const findInside = (specifier: string) =>
    insideImports(imports('server/b/x.ts', `import { a } from '${specifier}'`), { 'server/a': ['open.ts'] })
  expect(findInside('../a/open.ts')).toEqual([])
  expect(findInside('../a/inside.ts').map(({ path }) => path)).toEqual(['server/b/x.ts', 'server/a/open.ts'])
  expect(
    insideImports(imports('server/a/x.ts', "import { a } from './inside.ts'"), { 'server/a': [] }),
  ).toEqual([])
})

test('vague names', () => {
  const findings = (...lines: string[]) => rulesOf(vagueNames([source('server/a.ts', lines.join('\n'))]))
  const vague = ['vague-name']
  expect(findings('const found = 1')).toEqual(vague)
  expect(findings('for (const one of rows) run(one)')).toEqual(vague)
  expect(findings('function read(row: Row, at: number) {}')).toEqual(vague)
  expect(findings('rows.map((each) => each.id)')).toEqual(vague)
  expect(findings('const { id, data: known } = row')).toEqual(vague)
  expect(findings('const match = found.at(0)', 'const since = period.since')).toEqual([])
  expect(findings('const found = 1', ...Array.from({ length: 250 }, (_, n) => `const row${n} = 1`))).toEqual(
    [],
  )
  expect(rulesOf(vagueNames([source('server/a.test.ts', 'const found = 1')]))).toEqual([])
})

test('packed lines', () => {
  const findings = (text: string) => rulesOf(packedLines(source('server/a.ts', text)))
  const packed = ['packed-line']
  expect(findings('run(...[a, b])')).toEqual(packed)
  expect(findings('const row = { id, ...{ name, size } }')).toEqual(packed)
  expect(findings('const [low, high] = [0, rows.length]')).toEqual(packed)
  expect(findings('run(...[a, b].map(read))')).toEqual([])
  expect(findings('const [low, high] = [0, 1].map(read)')).toEqual([])
  expect(findings('const [low, high] = range')).toEqual([])
  expect(findings('const row = { id, ...(isNamed && { name }) }')).toEqual([])
  expect(findings('const all = [first, ...[...rows].sort()]')).toEqual([])
})
