/**
 * Packages around a small executable that starts the real one: dpkg and rpm install, upgrade and remove the service;
 * the archives for npm and containers and the chart have what their readers expect. `packages.ts --full` does the same
 * with whole releases, npm, and the image.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { digest, pack, type Packed } from '../../scripts/packages/archive.ts'
import { chartFiles } from '../../scripts/packages/chart.ts'
import { deb } from '../../scripts/packages/deb.ts'
import { formula } from '../../scripts/packages/formula.ts'
import { image } from '../../scripts/packages/image.ts'
import { mainPackage, npmFile, platformPackage } from '../../scripts/packages/npm.ts'
import { openPgpKey } from '../../scripts/packages/openpgp.ts'
import { rpm } from '../../scripts/packages/rpm.ts'
import { programs } from '../../scripts/programs.ts'
import { environmentTwin } from '../../server/cli/option.ts'
import { commonOptions, serveOptions } from '../../server/cli/options.ts'
import { binaryPath, cli } from '../support/binary.ts'
import { renderChart } from '../support/chart-templates.ts'
import { testAsRoot } from '../support/installed.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { lifeOfPackage, type Life } from './packages-actions.ts'

setDefaultTimeout(60_000)

let dir: TempDir
const texts = {
  manual: 'manual',
  license: 'licence',
  changelog: 'changes',
  thirdParty: 'others',
  completions: { bash: 'bash', zsh: 'zsh', fish: 'fish' },
}

/** A release that only differs in its version. */
function executable(version: string): Packed {
  const lines = ['#!/bin/sh', `[ "$1" = version ] && exec echo sightglass ${version}`]
  return pack(Buffer.from([...lines, `exec ${binaryPath} "$@"`, ''].join('\n')))
}

beforeAll(async () => {
  dir = tempDir('packages')
  expect((await cli(['version'])).code).toBe(0) // builds when a source is newer
  const key = openPgpKey(generateKeyPairSync('ed25519').privateKey, 'Releases <packages@sightglass.invalid>')
  for (const version of ['1.0.0-rc.1', '1.0.0']) {
    const releaseParts = {
      version,
      executable: executable(version),
      texts,
      key: version === '1.0.0' ? key : null,
    }
    writeFileSync(dir.join(`${version}.deb`), deb(releaseParts, 'amd64'))
    writeFileSync(dir.join(`${version}.rpm`), rpm(releaseParts, 'x86_64'))
  }
})
afterAll(() => dir.remove())

const files = (kind: 'deb' | 'rpm') => ({
  older: dir.join(`1.0.0-rc.1.${kind}`),
  newer: dir.join(`1.0.0.${kind}`),
})

/** What holds for every package manager. */
function expectLife({ before: installState, posted, upgraded, removed }: Life): void {
  expect(installState).toMatchObject({
    version: 'sightglass 1.0.0-rc.1',
    ownAccount: true,
    secretMode: '600',
    files: [true, true],
  })
  expect([posted, upgraded]).toEqual([
    202,
    { version: 'sightglass 1.0.0', restarted: true, configKept: true, posted: 202, events: 2 },
  ])
  expect(removed).toMatchObject({ stopped: true, executable: false, data: true, account: true })
}

testAsRoot(
  '/usr/bin/dpkg',
  'dpkg installs, starts, upgrades, removes and purges the service; the data stays',
  async () => {
    const life = await lifeOfPackage({ kind: 'deb', lower: '/', ...files('deb') })
    expectLife(life)
    expect(life.before.hint).toContain('link to create the first owner: journalctl')
    expect(life.before.asked.at(-1)).toEndWith('start sightglass.service')
    expect(life.removed.said).toContain('the configuration and the data stay')
    expect(life.purged).toMatchObject({ config: false, data: true })
    expect(life.purged?.said).toContain('the data in /var/lib/sightglass stays. To delete it: rm -r')
  },
)

testAsRoot(
  programs.rpm,
  'rpm verifies, installs, upgrades and removes the service; the data stays',
  async () => {
    const life = await lifeOfPackage({ kind: 'rpm', lower: '/', ...files('rpm') })
    expectLife(life)
    expect(life.before.verified.match(/: OK$/gm)?.length).toBe(4)
    expect(life.before.asked).toContain('--no-reload preset sightglass.service')
    expect(life.removed.said).toContain('the data in /var/lib/sightglass stays. To delete it: rm -r')
  },
)

const linux = { os: 'linux', cpu: process.arch as 'x64' | 'arm64', libc: 'glibc' } as const

test('the package for npm starts the executable of the platform and ends as it ends', async () => {
  const packageInfo = { version: '1.0.0', license: 'licence' }
  const tarballs = {
    main: mainPackage(packageInfo, [linux]),
    platform: platformPackage(packageInfo, linux, executable('1.0.0')),
  }
  const places = { main: 'sightglass', platform: `@sightglass/linux-${linux.cpu}` }
  for (const name of ['main', 'platform'] as const) {
    const target = dir.join('node_modules', places[name])
    mkdirSync(target, { recursive: true })
    const tar = Bun.spawn(['tar', '-xz', '--strip-components=1', '-C', target], { stdin: tarballs[name] })
    expect(await tar.exited).toBe(0)
  }
  const { optionalDependencies, bin } = await Bun.file(
    dir.join('node_modules/sightglass/package.json'),
  ).json()
  expect([optionalDependencies, npmFile(null, '1.0.0')]).toEqual([
    { [places.platform]: '1.0.0' },
    'npm/sightglass-1.0.0.tgz',
  ])
  const launcher = dir.join('node_modules/sightglass', bin.sightglass)
  const started = Bun.spawn(['node', launcher, 'version'], { stdout: 'pipe' })
  expect([await new Response(started.stdout).text(), await started.exited]).toEqual(['sightglass 1.0.0\n', 0])
  const wrong = Bun.spawn(['node', launcher, 'no such command'], { stderr: 'ignore' })
  expect(await wrong.exited).toBe(2)
})

test('the image has the digests that its manifests name, for an account without rights', async () => {
  const library = { version: '2.36', files: [{ path: 'lib/libc.so.6', content: 'library' }] }
  const options = {
    version: '1.0.0',
    executable: executable('1.0.0'),
    library,
    texts,
    architecture: 'amd64' as const,
  }
  const bytes = image(options)
  expect(digest('sha256', bytes)).toBe(digest('sha256', image(options)))
  const archiveFiles = await new Bun.Archive(bytes).files()
  const read = async (path: string) => JSON.parse(await archiveFiles.get(path)!.text())
  const blob = async (id: string) =>
    Buffer.from(await archiveFiles.get(`blobs/${id.replace(':', '/')}`)!.arrayBuffer())
  const [imageManifest] = (await read('index.json')).manifests
  const manifest = JSON.parse(String(await blob(imageManifest.digest)))
  for (const { digest: id, size } of [imageManifest, manifest.config, ...manifest.layers])
    expect([`sha256:${digest('sha256', await blob(id))}`, (await blob(id)).length]).toEqual([id, size])
  const { config, rootfs } = JSON.parse(String(await blob(manifest.config.digest)))
  const layers = await Promise.all(manifest.layers.map(({ digest: id }: { digest: string }) => blob(id)))
  expect(rootfs.diff_ids).toEqual(layers.map((layer) => `sha256:${digest('sha256', gunzipSync(layer))}`))
  expect([config.User, config.Cmd, config.Healthcheck.Test.slice(1)]).toEqual([
    '7400:7400',
    ['serve'],
    ['/usr/bin/sightglass', 'ready'],
  ])
  const set = (config.Env as string[]).map((line) => line.slice(0, line.indexOf('=')))
  const variableNames = Object.keys({ ...serveOptions, ...commonOptions }).map(environmentTwin)
  expect(set.filter((name) => !variableNames.includes(name))).toEqual(['PATH'])
  expect((await read('manifest.json'))[0].RepoTags).toEqual(['sightglass:1.0.0'])
})

interface Workload {
  kind: string
  spec: {
    replicas: number
    selector: { matchLabels: object }
    template: { metadata: { labels: object }; spec: PodSpec }
    volumeClaimTemplates?: { metadata: { name: string } }[]
  }
}
interface PodSpec {
  securityContext: { runAsNonRoot: boolean }
  containers: { envFrom?: object[]; ports: object[]; volumeMounts: { name: string }[] }[]
  volumes: { name: string }[]
}

const chart1 = chartFiles('1.0.0')
const values = Bun.YAML.parse(chart1.get('values.yaml')!) as { [name: string]: object }
const release = { Name: 'main', Service: 'Helm', Namespace: 'default' }

function rendered(changes: object): { texts: Map<string, string>; workload: Workload } {
  const root = { Values: { ...values, ...changes }, Release: release, Chart: { AppVersion: '1.0.0' } }
  const texts = renderChart(chart1, root)
  return { texts, workload: Bun.YAML.parse(texts.get('templates/workload.yaml')!) as Workload }
}

test('the chart makes one pod with a volume, or several with PostgreSQL, whose parts fit together', () => {
  const postgres = { ...values['postgresql'], secret: 'database' }
  const cases = [rendered({}), rendered({ postgresql: postgres })]
  expect(cases.map(({ workload: { kind, spec } }) => [kind, spec.replicas])).toEqual([
    ['StatefulSet', 1],
    ['Deployment', 2],
  ])
  for (const { workload } of cases) {
    const { selector, template, volumeClaimTemplates = [] } = workload.spec
    const { securityContext, containers, volumes } = template.spec
    expect(template.metadata.labels).toMatchObject(selector.matchLabels)
    expect(securityContext.runAsNonRoot).toBe(true)
    const names = [
      ...volumes.map(({ name }) => name),
      ...volumeClaimTemplates.map(({ metadata }) => metadata.name),
    ]
    expect(containers[0]!.volumeMounts.map(({ name }) => name).sort()).toEqual(names.sort())
  }
  expect(cases[1]!.workload.spec.template.spec.containers[0]!.envFrom).toEqual([
    { secretRef: { name: 'database' } },
  ])
})

test('the chart carries options into the file that the server reads, and its ingress to the service', async () => {
  const config = { 'public-url': 'https://a.example', 'trusted-proxy': ['10.0.0.0/8'], 'retention-days': 30 }
  const { texts: renderedTexts } = rendered({
    config,
    ingress: { ...values['ingress'], enabled: true, host: 'a.example' },
  })
  const map = Bun.YAML.parse(renderedTexts.get('templates/config.yaml')!) as {
    data: { [name: string]: string }
  }
  writeFileSync(dir.join('sightglass.toml'), map.data['sightglass.toml']!)
  const { code, stdout } = await cli(['config', '--config', dir.join('sightglass.toml'), '--json'])
  expect([code, stdout]).toEqual([0, expect.stringContaining('https://a.example')])
  const ingress = Bun.YAML.parse(renderedTexts.get('templates/ingress.yaml')!) as {
    spec: { rules: object[] }
  }
  expect(ingress.spec.rules).toMatchObject([
    {
      host: 'a.example',
      http: { paths: [{ backend: { service: { name: 'main', port: { name: 'http' } } } }] },
    },
  ])
})

test('the program of the long run loads', async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'packages.ts')], { stdout: 'pipe' })
  expect([await new Response(child.stdout).text(), await child.exited]).toEqual([
    '--full makes two releases and installs, upgrades and removes their packages\n',
    0,
  ])
})

test('the formula has an address and a sum for each system and CPU', () => {
  const file = {
    system: 'macos',
    cpu: 'arm',
    name: 'sightglass-1.0.0-darwin-arm64.gz',
    sha256: 'abc',
  } as const
  expect(formula('1.0.0', null, [file])).toContain(
    '  on_macos do\n    on_arm do\n      url "file://#{__dir__}/sightglass-1.0.0-darwin-arm64.gz"\n      sha256 "abc"\n',
  )
  expect(formula('1.0.0', 'https://a.example/', [file])).toContain(`url "https://a.example/${file.name}"`)
})
