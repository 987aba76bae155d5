/**
 * Runs a script of this repository on a machine with only Node.js and npm, or only Bun: fetches the pinned Bun if it
 * is missing, installs the locked packages if they changed, then runs `scripts/<verb>.ts` with the other arguments.
 * Plain JavaScript without dependencies, because nothing is installed yet.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const tools = join(root, '.tools')
const windows = process.platform === 'win32'
const verbs = ['start', 'build', 'test', 'check', 'dev']

const wanted = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).packageManager.replace('bun@', '')

function fail(message) {
  process.stderr.write(`sightglass: ${message}\n`)
  process.exit(1)
}

function say(message) {
  process.stderr.write(`sightglass: ${message}\n`)
}

/** Runs a command and captures its output; `null` if there is no such command. */
function runQuietly(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8', ...options })
  if (result.error?.code === 'ENOENT') return null
  return { code: result.status ?? 1, out: (result.stdout ?? '').trim(), err: (result.stderr ?? '').trim() }
}

/** Bun's package for this machine. It contains only the executable, so no install script has to run. */
function platformPackage() {
  const systems = { linux: 'linux', darwin: 'darwin', win32: 'windows', freebsd: 'freebsd' }
  const processors = { x64: 'x64', arm64: 'aarch64' }
  const system = systems[process.platform]
  const processor = processors[process.arch]
  if (!system || !processor) fail(`there is no Bun for ${process.platform} on ${process.arch}`)
  const musl = system === 'linux' && !process.report?.getReport().header.glibcVersionRuntime
  return `@oven/bun-${system}-${processor}${musl ? '-musl' : ''}`
}

function isWanted(bun) {
  return runQuietly(bun, ['--version'])?.out === wanted
}

function findBun() {
  if (process.versions.bun === wanted) return process.execPath
  if (isWanted('bun')) return 'bun'
  const name = platformPackage()
  const fetched = join(tools, 'node_modules', name, 'bin', windows ? 'bun.exe' : 'bun')
  if (existsSync(fetched) && isWanted(fetched)) return fetched
  fetchBun(name)
  if (!isWanted(fetched)) fail(`the Bun that was fetched does not run here (${fetched})`)
  return fetched
}

function fetchBun(name) {
  const spec = `${name}@${wanted}`
  say(`fetching Bun ${wanted} …`)
  mkdirSync(tools, { recursive: true })
  writeFileSync(join(tools, 'package.json'), '{"private":true}\n') // keeps installers out of the project's own file
  const npmArgs = ['install', '--prefix', tools, '--no-save', '--no-package-lock', '--ignore-scripts', spec]
  const result =
    runQuietly('npm', npmArgs, { shell: windows }) ??
    // Only another version of Bun is here: it can fetch the pinned one.
    (process.versions.bun
      ? runQuietly(process.execPath, ['add', '--exact', '--ignore-scripts', spec], { cwd: tools })
      : null)
  if (result === null) fail(`needs Bun ${wanted} or npm on the PATH to fetch it; neither was found`)
  if (result.code !== 0) fail(`could not fetch ${spec} from the npm registry:\n${result.err || result.out}`)
}

/** Installs exactly what bun.lock says, and only when it or package.json changed since the last time. */
function install(bun) {
  const hash = createHash('sha256')
  for (const name of ['package.json', 'bun.lock']) hash.update(readFileSync(join(root, name)))
  const state = hash.digest('hex')
  const stamp = join(root, 'node_modules', '.installed')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === state) return
  say('installing packages …')
  const result = runQuietly(bun, ['install', '--frozen-lockfile', '--ignore-scripts'])
  if (result.code !== 0) fail(`could not install the packages of bun.lock:\n${result.err || result.out}`)
  writeFileSync(stamp, state)
}

const [verb, ...args] = process.argv.slice(2)
if (!verbs.includes(verb)) fail(`usage: node scripts/run.mjs ${verbs.join('|')} [arguments]`)

const bun = findBun()
install(bun)

// Before the child is there: a signal that came in between would end us and leave the child behind.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    // Ctrl-C reaches the child too; a second SIGINT would ask it to hurry.
    if (signal === 'SIGINT' && (process.stdin.isTTY || process.env.npm_lifecycle_event)) return
    child.kill(signal)
  })
}
// Without --no-env-file Bun would read a `.env` of the folder into the appliance's settings.
const child = spawn(bun, ['--no-env-file', join(root, 'scripts', `${verb}.ts`), ...args], {
  stdio: 'inherit',
})
child.on('error', (error) => fail(`could not run ${bun}: ${error.message}`))

// npm runs us below a shell that dies of npm's signal without passing it on: without this the child would live on.
if (process.env.npm_lifecycle_event) {
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && child.kill('SIGTERM'), 250).unref()
}
const signalNumbers = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }
child.on('exit', (code, signal) => process.exit(code ?? 128 + (signalNumbers[signal] ?? 0)))
