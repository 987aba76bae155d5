/** A release for this machine: the same bytes twice, signed, checked offline with stock tools, and it runs. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { release } from '../../scripts/release.ts'
import { readTargets, targetNames, type TargetName } from '../../scripts/release-targets.ts'
import { cycloneDx } from '../../scripts/sbom.ts'
import { version } from '../../server/system/version.ts'
import { binaryPath, cli } from '../support/binary.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)

let dir: TempDir
const ownTarget = `${process.platform}-${process.arch}` as TargetName
// tests/e2e/packages.ts makes and installs the other packages.
const releaseOptions = { targets: [ownTarget], packages: ['helm'] as const, libraryFolder: null, url: null }

beforeAll(async () => {
  dir = tempDir('release')
  const { privateKey } = generateKeyPairSync('ed25519')
  writeFileSync(dir.join('key.pem'), String(privateKey.export({ type: 'pkcs8', format: 'pem' })))
  const messages: string[] = []
  const say = (line: string) => void messages.push(line)
  const missing = await release({
    ...releaseOptions,
    out: dir.join('one'),
    keyFile: dir.join('key.pem'),
    say,
  })
  expect([missing, messages]).toEqual([[], [`built ${ownTarget}`]])
  writeFileSync(dir.join('sightglass'), Bun.gunzipSync(read(`sightglass-${version}-${ownTarget}.gz`)))
}, 120_000)
afterAll(() => dir.remove())

const read = (name: string) => readFileSync(dir.join('one', name))

/** `npm run build` is the second build: another process, folder and time. Its executable embeds the licences too. */
test('the same sources give the same bytes, and the folder contains nothing else', async () => {
  expect((await cli(['version'])).code).toBe(0) // builds when a source is newer
  expect(readFileSync(dir.join('sightglass')).equals(readFileSync(binaryPath))).toBe(true)
  expect(readdirSync(dir.join('one')).sort()).toEqual([
    'LICENSE',
    'SHA256SUMS',
    'SHA256SUMS.asc',
    'SHA256SUMS.sig',
    'THIRD-PARTY-LICENSES.txt',
    'VERIFY.txt',
    `sightglass-${version}-helm.tgz`,
    `sightglass-${version}-${ownTarget}.gz`,
    `sightglass-${version}.cdx.json`,
    'sightglass-release.asc',
    'sightglass-release.pub',
  ])
})

test('the commands of VERIFY.txt pass, and fail on an altered file', async () => {
  const [verify = '', check = ''] = read('VERIFY.txt')
    .toString()
    .split('\n')
    .filter((line) => line.startsWith('  '))
  const run = async (line: string) =>
    Bun.spawn(['sh', '-c', line], { cwd: dir.join('one'), stdout: 'ignore', stderr: 'ignore' }).exited
  expect([await run(verify), await run(check)]).toEqual([0, 0])
  const sums = read('SHA256SUMS')
  writeFileSync(dir.join('one', 'SHA256SUMS'), sums.toString().replace(/^./, 'x'))
  expect(await run(verify)).not.toBe(0)
  writeFileSync(dir.join('one', 'SHA256SUMS'), sums)
  writeFileSync(dir.join('one', 'LICENSE'), 'other terms')
  expect(await run(check)).not.toBe(0)
})

test('the executable inside runs', async () => {
  const path = dir.join('sightglass')
  chmodSync(path, 0o755)
  const child = Bun.spawn([path, 'version', '--json'], { stdout: 'pipe', env: {} })
  expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({ version })
})

test('the bill of materials names every component once, with a package URL and a licence', () => {
  const bom = JSON.parse(read(`sightglass-${version}.cdx.json`).toString())
  expect(bom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6' })
  const purls = bom.components.map((component: { purl: string }) => component.purl)
  expect(new Set(purls).size).toBe(purls.length)
  expect(purls.some((purl: string) => purl.startsWith('pkg:npm/elysia@'))).toBe(true)
  const scoped = JSON.parse(cycloneDx('1.0.0', [{ name: '@a/b', version: '2.0.0', license: 'MIT' }]))
  expect(scoped.components[0].purl).toBe('pkg:npm/%40a/b@2.0.0')
})

test('a folder with other files is left unchanged', async () => {
  mkdirSync(dir.join('photos'))
  writeFileSync(dir.join('photos', 'one.jpg'), 'dear')
  const options = { ...releaseOptions, out: dir.join('photos'), keyFile: null, say: () => {} }
  expect(await release(options).catch(String)).toContain('not empty and holds no release')
  expect(readFileSync(dir.join('photos', 'one.jpg'), 'utf8')).toBe('dear')
})

test('targets are selected by name, and an unknown name is refused', () => {
  expect(readTargets('linux-x64,windows-x64')).toEqual(['linux-x64', 'windows-x64'])
  expect(() => readTargets('linux-x64,amiga')).toThrow('amiga')
  expect(targetNames).toContain(ownTarget)
})
