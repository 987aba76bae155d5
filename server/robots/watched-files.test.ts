/** Tests that a watched robots.txt becomes a version when its content changes, and that problems are logged once. */
import { expect, test } from 'bun:test'
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import type { SetRobots } from '../../db/contract/robots.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { looksLikeRobots } from '../../db/rules/robots.ts'
import { robotsSources, watchRobots } from './watched-files.ts'

const noon = Date.UTC(2026, 10, 20, 12)
const minuteMs = 60_000

/** The latest versions, as the store would answer. */
function services() {
  let now = noon
  const set: SetRobots[] = []
  const logged: string[] = []
  return {
    set,
    logged,
    move: (ms: number) => void (now += ms),
    clock: { now: () => now },
    log: {
      info: (name: string) => void logged.push(name),
      warn: (_: string, { message }: { message?: unknown } = {}) => void logged.push(String(message)),
    },
    store: {
      orgs: {
        find: async (_?: string): Promise<{ id: string } | null> => ({ id: 'org_1' }),
        list: async () => [],
      },
      robots: {
        list: async () => set.map(({ fromMs }) => ({ fromMs })).toReversed(),
        set: async (command: SetRobots) => {
          set.push(command)
          return { state: 'stored', version: set.length }
        },
      },
    },
  }
}

function write(path: string, text: string, atMs: number): void {
  writeFileSync(`${path}.new`, text)
  utimesSync(`${path}.new`, atMs / 1_000, atMs / 1_000)
  renameSync(`${path}.new`, path)
}

test('each change of a file is a version, in force since the file was written', async () => {
  using dir = tempDir()
  const path = dir.join('robots.txt')
  const parts = services()
  const files = watchRobots(parts as never, [{ org: null, siteId: 'shop', path }])!
  await files.check()
  await files.check()
  expect(parts.logged).toEqual([expect.stringContaining('ENOENT')])
  write(path, 'User-agent: *', noon - 5 * minuteMs)
  await files.check()
  await files.check()
  parts.move(minuteMs)
  write(path, 'User-agent: a', noon + minuteMs / 2)
  await files.check()
  write(path, 'User-agent: b', noon - 60 * minuteMs) // older than the version in force: its time says nothing
  await files.check()
  write(path, 'User-agent: c', noon + 60 * minuteMs)
  parts.move(minuteMs)
  await files.check()
  expect(parts.set.map(({ text, fromMs }) => [text, fromMs])).toEqual([
    ['User-agent: *', noon - 5 * minuteMs],
    ['User-agent: a', noon + minuteMs / 2],
    ['User-agent: b', noon + minuteMs],
    ['User-agent: c', noon + 2 * minuteMs],
  ])
  expect(parts.set[0]).toMatchObject({ orgId: 'org_1', siteId: 'shop', setBy: 'system' })
  expect(parts.set[0]!.audit.metadata).toMatchObject({ file: path })
})

test('a file that is too long is refused and tried again when it changes', async () => {
  using dir = tempDir()
  const path = dir.join('robots.txt')
  const parts = services()
  const files = watchRobots(parts as never, [{ org: null, siteId: 'shop', path }])!
  write(path, '#'.repeat(500 * 1024 + 1), noon)
  await files.check()
  await files.check()
  expect([parts.set, parts.logged]).toEqual([[], [expect.stringContaining('at most 500 KiB')]])
  write(path, '#'.repeat(500 * 1024), noon - 1)
  await files.check()
  expect(parts.set).toHaveLength(1)
})

test('a file that is no robots.txt is refused, and neither stored nor quoted', async () => {
  using dir = tempDir()
  const path = dir.join('logs', 'robots.txt')
  mkdirSync(dir.join('logs'))
  mkdirSync(dir.join('data'))
  const secret = 'ab'.repeat(32)
  writeFileSync(dir.join('data', 'secret.key'), secret)
  const replacements: { [name: string]: () => void } = {
    'a key': () => writeFileSync(path, secret),
    'a private key': () =>
      writeFileSync(path, `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----\n`),
    passwords: () => writeFileSync(path, `root:x:0:0:${secret}:/root\nsync:x:4:65534::/bin\n`),
    'a page': () => writeFileSync(path, `<!doctype html><title>${secret}</title>`),
    binary: () => writeFileSync(path, `User-agent: *\0${secret}`),
    'a link to the key': () => symlinkSync(dir.join('data', 'secret.key'), path),
    'a hard link to the key': () => linkSync(dir.join('data', 'secret.key'), path),
    'a link to a robots.txt elsewhere': () => {
      writeFileSync(dir.join('elsewhere.txt'), `User-agent: ${secret}\nDisallow: /`)
      symlinkSync(dir.join('elsewhere.txt'), path)
    },
    'a pipe': () => void Bun.spawnSync(['mkfifo', path]),
  }
  for (const [name, place] of Object.entries(replacements)) {
    const parts = { ...services(), protectedFiles: { dataDir: dir.join('data'), keyFiles: [] } }
    rmSync(path, { force: true })
    write(path, 'User-agent: *\nDisallow: /a\n', noon - minuteMs)
    const files = watchRobots(parts as never, [{ org: null, siteId: 'shop', path }])!
    await files.check()
    rmSync(path)
    place()
    await files.check()
    await files.check()
    expect([name, parts.set.length, parts.logged.length]).toEqual([name, 1, 2])
    expect(JSON.stringify([parts.set, parts.logged])).not.toContain(secret)
  }
})

test('what people write into a robots.txt is one', () => {
  const robots = [
    '',
    '# nothing is refused\n',
    '\ufeffUser-agent: *\r\nDisallow:\r\n',
    'user-agent:*\ndisallow:/\nNoindex: /b\nHost: example.com\nClean-param: a /\n',
    'Sitemap: https://example.com/sitemap.xml',
    'User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n',
  ]
  for (const text of robots) expect([text, looksLikeRobots(text)]).toEqual([text, true])
})

test('the option names a site and a file', () => {
  expect(robotsSources('shop=/a/robots.txt, b=/c=d')).toEqual([
    { org: null, siteId: 'shop', path: '/a/robots.txt' },
    { org: null, siteId: 'b', path: '/c=d' },
  ])
  expect(robotsSources('')).toEqual([])
  for (const wrong of ['shop', '=/a', 'shop=', 'a=/x,a=/y', `${'a'.repeat(201)}=/x`])
    expect(() => robotsSources(wrong)).toThrow()
})

test('[[robots]] of the configuration file also names an organization', () => {
  const sources = (...tables: object[]) => robotsSources(JSON.stringify(tables))
  const shop = { site: 'shop', path: '/a' }
  expect(sources(shop, { ...shop, org: 'acme' })).toEqual([
    { org: 'default', siteId: 'shop', path: '/a' },
    { org: 'acme', siteId: 'shop', path: '/a' },
  ])
  expect(() => sources(shop, { ...shop, path: '/b' })).toThrow('the site shop has two files')
  expect(() => sources({ site: 'shop' })).toThrow('[[robots]] needs path as a string')
  expect(() => sources({ ...shop, org: 1 })).toThrow('[[robots]] needs org as a string')
  expect(() => sources({ ...shop, file: '/a' })).toThrow('[[robots]] has no "file"; it has site, path, org')
})

test('a file of an organization that does not exist waits for it', async () => {
  using dir = tempDir()
  const path = dir.join('robots.txt')
  const parts = services()
  const orgs = new Map([['default', 'org_1']])
  parts.store.orgs.find = async (name?: string) => {
    const id = orgs.get(name ?? '')
    return id === undefined ? null : { id }
  }
  const sources = ['acme', 'default'].map((org) => ({ org, siteId: 'shop', path }))
  const files = watchRobots(parts as never, sources)!
  write(path, 'User-agent: *', noon - minuteMs)
  await files.check()
  await files.check()
  expect(parts.set.map(({ orgId }) => orgId)).toEqual(['org_1'])
  expect(parts.logged).toEqual(['There is no organization "acme".', 'robots_version'])
  orgs.set('acme', 'org_2')
  await files.check()
  expect(parts.set.map(({ orgId }) => orgId)).toEqual(['org_1', 'org_2'])
})
