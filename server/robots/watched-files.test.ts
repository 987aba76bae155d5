/** Tests that a watched robots.txt becomes a version when its content changes, and that problems are logged once. */
import { expect, test } from 'bun:test'
import { renameSync, utimesSync, writeFileSync } from 'node:fs'
import type { SetRobots } from '../../db/contract/robots.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
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
