/** What may be read under a name that an operator gave once: a table of files that take the place of the named one. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { watchedPath } from './watched-path.ts'

setDefaultTimeout(30_000)
const temp = tempDir('watched-path')
afterAll(() => temp.remove())

let count = 0
/** A folder with logs, one with secrets, and a data folder. */
function machine() {
  const root = temp.join(`machine-${count++}`)
  const path = (...names: string[]) => join(root, ...names)
  const write = (text: string, ...names: string[]) => {
    mkdirSync(dirname(path(...names)), { recursive: true })
    writeFileSync(path(...names), text)
  }
  write('a log', 'logs', 'access.log')
  write('an older log', 'logs', 'access.log.1')
  write('a secret', 'elsewhere', 'password')
  write('the key', 'data', 'secret.key')
  write('another key', 'keys', 'ring.key')
  const watched = watchedPath(path('logs', 'access.log'), {
    dataDir: path('data'),
    keyFiles: [path('keys', 'ring.key')],
  })
  const read = async (name = 'access.log') => {
    const file = await watched.open(path('logs', name))
    try {
      return await file.readFile('utf8')
    } finally {
      await file.close()
    }
  }
  return { path, write, read }
}

type Machine = ReturnType<typeof machine>

const replacements: { [name: string]: [replace: (machine: Machine) => void, answer: string | RegExp] } = {
  'another file': [({ write }) => write('a new log', 'logs', 'access.log'), 'a new log'],
  'a link to a sibling': [
    ({ path }) => symlinkSync('access.log.1', path('logs', 'access.log')),
    'an older log',
  ],
  'a link below the folder': [
    ({ path, write }) => {
      write('dated', 'logs', '2026', 'a.log')
      symlinkSync('2026/a.log', path('logs', 'access.log'))
    },
    'dated',
  ],
  'a link out of the folder': [
    ({ path }) => symlinkSync(path('elsewhere', 'password'), path('logs', 'access.log')),
    /leads out of/,
  ],
  'a relative link out of the folder': [
    ({ path }) => symlinkSync('../elsewhere/password', path('logs', 'access.log')),
    /leads out of/,
  ],
  'a link to a folder whose name begins alike': [
    ({ path, write }) => {
      write('a secret', 'logs-of-others', 'access.log')
      symlinkSync(path('logs-of-others', 'access.log'), path('logs', 'access.log'))
    },
    /leads out of/,
  ],
  'a link over a link': [
    ({ path }) => {
      symlinkSync(path('elsewhere'), path('logs', 'folder'))
      symlinkSync('folder/password', path('logs', 'access.log'))
    },
    /leads out of/,
  ],
  'a link to a key': [
    ({ path }) => symlinkSync(path('data', 'secret.key'), path('logs', 'access.log')),
    /leads into the data folder/,
  ],
  'a hard link to a key': [
    ({ path }) => linkSync(path('data', 'secret.key'), path('logs', 'access.log')),
    /is a file of Sightglass under another name/,
  ],
  'a hard link to a key outside of the data folder': [
    ({ path }) => linkSync(path('keys', 'ring.key'), path('logs', 'access.log')),
    /is a file of Sightglass under another name/,
  ],
  'a link to itself': [({ path }) => symlinkSync('access.log', path('logs', 'access.log')), /ELOOP/],
  'a link to nothing': [({ path }) => symlinkSync('gone', path('logs', 'access.log')), /ENOENT/],
  'a named pipe': [
    ({ path }) => void Bun.spawnSync(['mkfifo', path('logs', 'access.log')]),
    /is a named pipe, not a file/,
  ],
  'a link to a device': [({ path }) => symlinkSync('/dev/zero', path('logs', 'access.log')), /leads out of/],
  'a folder': [({ path }) => mkdirSync(path('logs', 'access.log')), /is a folder, not a file/],
}

async function answerOf(read: () => Promise<string>): Promise<string> {
  return read().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
}

for (const [name, [replace, answer]] of Object.entries(replacements))
  test(`the file becomes ${name}`, async () => {
    const host = machine()
    expect(await host.read()).toBe('a log')
    rmSync(host.path('logs', 'access.log'))
    replace(host)
    const text = await answerOf(host.read)
    if (typeof answer === 'string') expect(text).toBe(answer)
    else expect(text).toMatch(answer)
  })

test('a rotated file is held to the same rules', async () => {
  const host = machine()
  expect(await host.read('access.log.1')).toBe('an older log')
  symlinkSync(host.path('data', 'secret.key'), host.path('logs', 'access.log.2'))
  expect(await answerOf(() => host.read('access.log.2'))).toMatch(/leads into the data folder/)
})

test('a folder of the path becomes a link', async () => {
  const host = machine()
  expect(await host.read()).toBe('a log')
  host.write('a secret', 'elsewhere', 'access.log')
  renameSync(host.path('logs'), host.path('was-logs'))
  symlinkSync(host.path('elsewhere'), host.path('logs'))
  expect(await answerOf(host.read)).toMatch(/leads out of/)
})

test('links of the path that are there at the start: a pod’s log, and releases behind `current`', async () => {
  const root = temp.join('links')
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  const read = async (watched: ReturnType<typeof watchedPath>, path: string) =>
    answerOf(async () => {
      const file = await watched.open(path)
      const text = await file.readFile('utf8')
      await file.close()
      return text
    })
  const emptyPaths = { dataDir: null, keyFiles: [] }

  const shopLog = join(root, 'containers', 'shop.log')
  write(join(root, 'pods', 'shop', '0.log'), 'first run')
  write(join(root, 'pods', 'shop', '1.log'), 'second run')
  write(join(root, 'pods', 'bank', '0.log'), 'of another pod')
  mkdirSync(join(root, 'containers'))
  const point = (target: string) => {
    rmSync(shopLog, { force: true })
    symlinkSync(target, shopLog)
  }
  point(join(root, 'pods', 'shop', '0.log'))
  const pod = watchedPath(shopLog, emptyPaths)
  expect(await read(pod, shopLog)).toBe('first run')
  point(join(root, 'pods', 'shop', '1.log'))
  expect(await read(pod, shopLog)).toBe('second run')
  point(join(root, 'pods', 'bank', '0.log'))
  expect(await read(pod, shopLog)).toMatch(/leads out of/)

  const robots = join(root, 'www', 'current', 'robots.txt')
  write(join(root, 'www', 'releases', '1', 'robots.txt'), 'release 1')
  write(join(root, 'www', 'releases', '2', 'robots.txt'), 'release 2')
  symlinkSync('releases/1', join(root, 'www', 'current'))
  const deployed = watchedPath(robots, emptyPaths)
  expect(await read(deployed, robots)).toBe('release 1')
  rmSync(join(root, 'www', 'current'))
  symlinkSync('releases/2', join(root, 'www', 'current'))
  expect(await read(deployed, robots)).toBe('release 2')
  rmSync(join(root, 'www', 'current'))
  symlinkSync(join(root, 'pods', 'bank'), join(root, 'www', 'current'))
  write(join(root, 'pods', 'bank', 'robots.txt'), 'of somebody else')
  expect(await read(deployed, robots)).toMatch(/leads out of/)
})

test('whatever chain of links takes the place of the file, no byte of a protected file is read', async () => {
  const steps = [
    'logs/access.log',
    'logs/b',
    'logs/c',
    'elsewhere/d',
    'data/secret.key',
    'elsewhere/password',
  ]
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(3), fc.constantFrom(...steps), fc.boolean()), { minLength: 1, maxLength: 6 }),
      async (links) => {
        const host = machine()
        await host.read()
        for (const [from, to, isHard] of links) {
          const path = host.path(steps[from]!)
          rmSync(path, { force: true })
          try {
            if (isHard) linkSync(host.path(to), path)
            else symlinkSync(host.path(to), path)
          } catch {
            // A hard link to what is not there.
          }
        }
        const text = await answerOf(host.read)
        expect(text).not.toContain('the key')
        // A hard link to another file of the machine is that file: only the owner of the file can make it.
        if (!links.some(([, , isHard]) => isHard)) expect(text).not.toContain('a secret')
        rmSync(host.path(), { recursive: true })
      },
    ),
    { numRuns: 60 },
  )
})
