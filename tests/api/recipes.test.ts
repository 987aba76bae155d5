/** The clients of /docs/languages, run by their interpreters: killed, resumed and without an appliance for a while. */
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { programs } from '../../scripts/programs.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { testWith, type Program } from '../support/installed.ts'
import { run, type Running } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000)

const files = tempDir('recipes')
let appliance: Appliance
let key = ''

beforeAll(async () => {
  appliance = await startAppliance({ dataDir: files.join('data') })
  const keyExit = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'recipes', '--json')
  key = (JSON.parse(keyExit.stdout) as { key: string }).key
})
afterAll(async () => {
  await appliance.stop()
  files.remove()
})

interface Recipe {
  language: string
  interpreter: Program
  file: string
  /** Finds it among the blocks of the page; the next block is its program. */
  isClient: RegExp
  /** Lines of the program that create the client. */
  creates: RegExp
  /** A program that tracks the events `from` to `to` as the page shows it, and prints each number. */
  program: { path: string; text(create: string): string }
  build?: string[]
  command: string[]
  /** Sends after its work and ends, instead of in the background. */
  endsByItself: boolean
}

const recipes: Recipe[] = [
  {
    language: 'Python',
    interpreter: 'python3',
    file: 'sightglass.py',
    isClient: /^"""Sends/,
    creates: /import|Sightglass\(/,
    program: {
      path: 'main.py',
      text: (create) => `import sys, time\n${create}
for n in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
    sightglass.track("tool.executed", "visitor", tool="t%d" % n)
    print(n, flush=True)
time.sleep(60)\n`,
    },
    command: ['python3', 'main.py'],
    endsByItself: false,
  },
  {
    language: 'Go',
    interpreter: 'go',
    file: 'sightglass/sightglass.go',
    isClient: /^package sightglass$/m,
    creates: /New\(/,
    program: {
      path: 'main.go',
      text: (create) => `package main
import ("fmt"; "os"; "strconv"; "time"; "example/sightglass")
func main() {
	${create}
	from, _ := strconv.Atoi(os.Args[1])
	to, _ := strconv.Atoi(os.Args[2])
	for n := from; n <= to; n++ {
		client.Track("tool.executed", "visitor", "success", map[string]any{"tool": fmt.Sprintf("t%d", n)})
		fmt.Println(n)
	}
	time.Sleep(time.Minute)
}\n`,
    },
    build: ['go', 'build', '-o', 'main', '.'],
    command: ['./main'],
    endsByItself: false,
  },
  {
    language: 'PHP',
    interpreter: 'php',
    file: 'sightglass.php',
    isClient: /^final class Sightglass/m,
    creates: /require|new Sightglass/,
    program: {
      path: 'main.php',
      text: (create) => `<?php\n${create.replaceAll('/../', '/')}
for ($n = (int) $argv[1]; $n <= (int) $argv[2]; $n++) {
    $sightglass->track('tool.executed', 'visitor', fields: ['tool' => "t$n"]);
    echo "$n\\n";
}\n`,
    },
    command: [programs['php-cli'], 'main.php'],
    endsByItself: true,
  },
]

/** Between a client and the appliance: loses answers, and refuses while the appliance is away. */
function startProxy() {
  const proxy = {
    stored: 0,
    deduped: 0,
    refusedMs: [] as number[],
    afterRefusalMs: [] as number[],
    /** Called when the appliance has stored a batch; returns false when the answer is lost. */
    onStored: (_count: number): boolean => true,
    url: '',
    stop: () => server.stop(true),
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = await request.text()
      const lastRefusal = proxy.refusedMs.at(-1)
      if (lastRefusal !== undefined) proxy.afterRefusalMs.push(performance.now() - lastRefusal)
      const headers = new Headers(request.headers)
      for (const name of ['host', 'content-length', 'connection']) headers.delete(name)
      const answer = await fetch(`${appliance.url}/v1/sdk/events`, { method: 'POST', body, headers }).catch(
        () => null,
      )
      if (answer === null) {
        proxy.refusedMs.push(performance.now())
        return new Response('away', { status: 503, headers: { 'retry-after': '3' } })
      }
      const text = await answer.text()
      if (answer.status !== 202) throw new Error(`${answer.status} ${text}`)
      proxy.deduped += (JSON.parse(text) as { deduped: number }).deduped
      const isAnswered = proxy.onStored(++proxy.stored)
      return isAnswered ? new Response(text, { status: 202 }) : new Promise<Response>(() => {})
    },
  })
  proxy.url = `http://127.0.0.1:${server.port}`
  return proxy
}

/** The code blocks of the page as a browser shows them, asked for by the address of the proxy. */
async function blocksOf(host: string): Promise<string[]> {
  const page = await fetch(`${appliance.url}/docs/languages`, { headers: { host } })
  const blocks = [...(await page.text()).matchAll(/<pre[^>]*>([^<]*)<\/pre>/g)].map(([, block = '']) => block)
  const characters: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#x27': "'", amp: '&' }
  return blocks.map((block) => block.replace(/&(\w+|#x27);/g, (_, name: string) => characters[name]!))
}

async function writeProgram(folder: TempDir, recipe: Recipe, host: string): Promise<void> {
  const blocks = await blocksOf(host)
  const index = blocks.findIndex((block) => recipe.isClient.test(block))
  const create = blocks[index + 1]!.split('\n')
    .filter((line) => recipe.creates.test(line))
    .join('\n')
  expect(create).toContain(`http://${host}`)
  mkdirSync(folder.join('sightglass'))
  writeFileSync(folder.join(recipe.file), `${blocks[index]!}\n`)
  writeFileSync(folder.join('go.mod'), 'module example\n\ngo 1.19\n')
  const text = recipe.program.text(
    create.replace('agtx_ik_your-key', key).replace('my-site', recipe.language),
  )
  writeFileSync(folder.join(recipe.program.path), text)
}

async function until(holds: () => Promise<boolean> | boolean, description: string): Promise<void> {
  for (const endMs = performance.now() + 30_000; !(await holds()); await Bun.sleep(100))
    if (performance.now() > endMs) throw new Error(`${description} did not happen in time`)
}

async function storedTools(site: string): Promise<number[]> {
  const { stdout } = await appliance.cli('export', 'traces', '--filter', `siteId=${site}`)
  return [...stdout.matchAll(/"tool":"t(\d+)"/g)].map(([, n]) => Number(n)).sort((a, b) => a - b)
}

for (const recipe of recipes) {
  testWith(
    recipe.interpreter,
    `${recipe.language}: killed in the middle and without an appliance, each event is stored once`,
    async () => {
      using folder = tempDir('recipe')
      const proxy = startProxy()
      const env = { PATH: process.env.PATH ?? '', HOME: files.path, NO_PROXY: '*', GOFLAGS: '-mod=mod' }
      const start = (from: number, to: number): Running =>
        run([...recipe.command, String(from), String(to)], { cwd: folder.path, env })
      await writeProgram(folder, recipe, new URL(proxy.url).host)
      if (recipe.build !== undefined) {
        const build = run(recipe.build, { cwd: folder.path, env })
        expect([await build.exited, build.stderr()]).toEqual([0, ''])
      }

      // The second batch is stored, and the client is killed before the response. It still tracks meanwhile.
      const tracked = 1500
      proxy.onStored = (count) => count < 2
      const first = start(1, tracked)
      await first.line((line) => (line === String(tracked) ? line : null), 30_000)
      await until(() => proxy.stored >= 2, 'a second batch')
      first.signal('SIGKILL')
      expect([await first.exited, first.stderr()]).toEqual([137, ''])
      proxy.onStored = () => true

      const port = Number(new URL(appliance.url).port)
      await appliance.kill()
      let second = start(tracked + 1, tracked + 500)
      await second.line((line) => (line === String(tracked + 500) ? line : null), 30_000)
      await until(() => proxy.refusedMs.length > 0, 'a refusal')
      if (recipe.endsByItself) expect(await second.exited).toBe(0)
      appliance = await startAppliance({ dataDir: files.join('data'), port })
      const isEmpty = (): boolean =>
        readdirSync(folder.path).every((name) => !/\.(spool|sending)$/.test(name))
      await until(async () => {
        if (!recipe.endsByItself) return isEmpty()
        second = start(1, 0) // a later request, without events
        expect([await second.exited, second.stderr()]).toEqual([0, ''])
        return isEmpty()
      }, 'an empty spool')
      if (!recipe.endsByItself) second.signal('SIGKILL')
      await second.exited

      const expected = Array.from({ length: tracked + 500 }, (_, index) => index + 1)
      expect(await storedTools(recipe.language)).toEqual(expected)
      expect(proxy.deduped).toBeGreaterThan(0)
      expect(Math.min(...proxy.afterRefusalMs)).toBeGreaterThan(2_900) // Retry-After
      await proxy.stop()
    },
  )
}
