/**
 * `bun tests/e2e/packages.ts --full`: makes releases of two versions, the newer twice and signed, installs, upgrades
 * and removes each kind of package with real executables: dpkg in a system made by debootstrap, rpm, npm in an empty
 * folder, the image unpacked. Needs root, Debian's packages debootstrap, rpm, skopeo, golang-go and
 * golang-github-masterminds-sprig-dev, and the registries of Debian and npm. `--releases FOLDER` keeps the releases and
 * uses those of an earlier run. Without --full it says what it would do.
 */
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { digest } from '../../scripts/packages/archive.ts'
import { chartFiles } from '../../scripts/packages/chart.ts'
import { glibcMin } from '../../scripts/packages/system-files.ts'
import { root } from '../../scripts/build.ts'
import type { TargetName } from '../../scripts/release-targets.ts'
import { version } from '../../server/system/version.ts'
import { renderChart } from '../support/chart-templates.ts'
import { event } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { copySources, expectEqual, lifeOfPackage, ownTarget, release, succeed } from './packages-actions.ts'

const architecture =
  process.arch === 'x64' ? { deb: 'amd64', rpm: 'x86_64' } : { deb: 'arm64', rpm: 'aarch64' }
const olderVersion = '0.0.9'
const dir = tempDir('packages')

function sums(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path.slice(folder.length + 1)} ${digest('sha256', readFileSync(path))}`)
    .sort()
}

/** What packages depend on: the newest version of a symbol that the executable takes from the C library. */
async function glibc(): Promise<void> {
  const symbols = await succeed(['readelf', '--version-info', '--wide', join(root, 'dist/sightglass')])
  const versions = [...symbols.matchAll(/GLIBC_([\d.]+)/g)].map(([, glibcVersion]) => glibcVersion!)
  expectEqual('newest symbol of the C library', versions.sort(Bun.semver.order).at(-1), glibcMin)
}

async function distributions(older: string, newer: string): Promise<void> {
  const lower = dir.join('system')
  const mirror = /(?:URIs:|^deb)\s+(https?:\S+)/m.exec(
    await succeed(['sh', '-c', 'cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true']),
  )?.[1]
  await succeed([
    'debootstrap',
    '--variant=minbase',
    '--include=rpm',
    'bookworm',
    lower,
    ...(mirror ? [mirror] : []),
  ])
  const names = (kind: 'deb' | 'rpm', packageVersion: string) =>
    kind === 'deb'
      ? `sightglass_${packageVersion}_${architecture.deb}.deb`
      : `sightglass-${packageVersion}-1.${architecture.rpm}.rpm`
  for (const kind of ['deb', 'rpm'] as const) {
    const life = await lifeOfPackage({
      kind,
      lower,
      older: join(older, names(kind, olderVersion)),
      newer: join(newer, names(kind, version)),
    })
    const { before: installState, upgraded, removed, purged } = life
    expectEqual(
      `${kind} installed`,
      [installState.version, installState.ownAccount],
      [`sightglass ${olderVersion}`, true],
    )
    expectEqual(`${kind} upgraded`, upgraded, {
      version: `sightglass ${version}`,
      restarted: true,
      configKept: true,
      posted: 202,
      events: 2,
    })
    expectEqual(
      `${kind} removed, data kept`,
      [removed.stopped, removed.executable, removed.data],
      [true, false, true],
    )
    if (kind === 'deb') expectEqual('deb purged, data kept', [purged?.config, purged?.data], [false, true])
  }
}

interface Use {
  command: string[] // that starts the server on a socket in its data folder
  cli: string // the executable of its version
  data: string
  id: string // of the event to send
  health?: string[] // the command of a health check
}

/** Starts a server, sends it an event, stops it, and returns how many events it has. */
async function useServer({ command, cli, data, id, health }: Use): Promise<number> {
  const child = Bun.spawn(command, { stdout: 'ignore', stderr: Bun.file(dir.join('server.log')) })
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`http://localhost${path}`, { unix: join(data, 'http.sock'), ...init })
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  try {
    await until(() =>
      get('/readyz').then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    if (health !== undefined) expectEqual('health check', Bun.spawnSync(health).exitCode, 0)
    const keyFile = dir.join(`${basename(data)}.keys`)
    if (!existsSync(keyFile)) {
      const make = async (kind: string) => {
        const args = ['key', 'create', '--kind', kind, '--label', 'x', '--json', '--data-dir', data]
        return (JSON.parse(await succeed([cli, ...args])) as { key: string }).key
      }
      writeFileSync(keyFile, JSON.stringify([await make('ingest'), await make('secret')]))
    }
    const [ingest, secret] = JSON.parse(readFileSync(keyFile, 'utf8')) as [string, string]
    const posted = await get('/v1/sdk/events', {
      method: 'POST',
      headers: { ...bearer(ingest), 'content-type': 'application/json' },
      body: JSON.stringify({ events: [event(id)] }),
    })
    expectEqual(`posted ${id}`, posted.status, 202)
    const read = await get('/v1/traces', { headers: { ...bearer(secret), accept: 'application/x-ndjson' } })
    const last = (await read.text()).trim().split('\n').at(-1) ?? ''
    return (JSON.parse(last) as { _end: { count: number } })._end.count
  } catch (error) {
    throw new Error(`${String(error)}\n${readFileSync(dir.join('server.log'), 'utf8')}`)
  } finally {
    child.kill('SIGTERM')
    await child.exited
  }
}

async function npm(older: string, newer: string): Promise<void> {
  const cwd = dir.join('empty')
  const data = dir.join('npm-data')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'package.json'), '{}')
  const files = (folder: string, packageVersion: string) =>
    ['', `-${ownTarget}`].map((suffix) => join(folder, 'npm', `sightglass${suffix}-${packageVersion}.tgz`))
  for (const [folder, packageVersion, events] of [
    [older, olderVersion, 1],
    [newer, version, 2],
  ] as const) {
    await succeed(['npm', 'install', '--no-audit', '--no-fund', ...files(folder, packageVersion)], { cwd })
    expectEqual(
      'npx sightglass version',
      await succeed(['npx', 'sightglass', 'version'], { cwd }),
      `sightglass ${packageVersion}\n`,
    )
    const installed = readFileSync(join(cwd, 'node_modules/@sightglass', ownTarget, 'bin/sightglass'))
    const released = Bun.gunzipSync(
      readFileSync(join(folder, `sightglass-${packageVersion}-${ownTarget}.gz`)),
    )
    expectEqual('npm has the file of the release', digest('sha256', installed), digest('sha256', released))
    const bin = join(cwd, 'node_modules/.bin/sightglass')
    const serve = [bin, 'serve', '--data-dir', data, '--listen', `unix:${join(data, 'http.sock')}`]
    expectEqual(
      'events with npm',
      await useServer({ command: serve, cli: bin, data, id: `npm_${packageVersion}` }),
      events,
    )
  }
  await succeed(['npm', 'uninstall', '--no-audit', 'sightglass', `@sightglass/${ownTarget}`], { cwd })
  expectEqual('left by npm uninstall', existsSync(join(cwd, 'node_modules/sightglass')), false)
}

/** As a container has it: nothing writable but the volume, and no capability. */
async function container(older: string, newer: string): Promise<void> {
  const data = dir.join('volume')
  await succeed(['install', '-d', '-o', '7400', '-g', '7400', '-m', '0700', data])
  for (const [folder, packageVersion, events] of [
    [older, olderVersion, 1],
    [newer, version, 2],
  ] as const) {
    const tar = join(folder, `sightglass-${packageVersion}-image-${architecture.deb}.tar`)
    const imageDir = dir.join(`image-${packageVersion}`)
    mkdirSync(`${imageDir}/root`, { recursive: true })
    await succeed(['skopeo', 'copy', `oci-archive:${tar}`, `dir:${imageDir}/oci`])
    await succeed(['skopeo', 'copy', `docker-archive:${tar}`, `dir:${imageDir}/docker`])
    const { layers } = JSON.parse(readFileSync(`${imageDir}/oci/manifest.json`, 'utf8')) as {
      layers: { digest: string }[]
    }
    for (const { digest: id } of layers)
      await succeed(['tar', '-xzf', `${imageDir}/oci/${id.slice(7)}`, '-C', `${imageDir}/root`])
    const variables = 'SIGHTGLASS_DATA_DIR=/data SIGHTGLASS_LISTEN=unix:/data/http.sock'
    const mounts = [
      `mkdir -p ${imageDir}/root/proc ${imageDir}/root/dev && mount --bind ${imageDir}/root ${imageDir}/root`,
      `mount -t proc proc ${imageDir}/root/proc && mount --rbind /dev ${imageDir}/root/dev`,
      `mount --bind ${data} ${imageDir}/root/data && mount -t tmpfs tmpfs ${imageDir}/root/tmp`,
      `mount -o remount,bind,ro ${imageDir}/root`,
      `exec env -i ${variables} /usr/sbin/chroot --userspec=7400:7400 ${imageDir}/root "$@"`,
    ]
    const inside = (...args: string[]) => [
      'unshare',
      '--mount',
      '--net',
      'sh',
      '-c',
      mounts.join(' && '),
      'sh',
      ...args,
    ]
    const notReady = Bun.spawnSync(inside('/usr/bin/sightglass', 'ready'))
    expectEqual('health check before the start', notReady.exitCode, 1)
    const counted = await useServer({
      command: inside('/usr/bin/sightglass', 'serve'),
      cli: `${imageDir}/root/usr/bin/sightglass`,
      data,
      id: `image_${packageVersion}`,
      health: inside('/usr/bin/sightglass', 'ready'),
    })
    expectEqual('events in the container', counted, events)
  }
}

/** Renders the chart with the engine that Helm uses. */
const goRenderer = `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/Masterminds/sprig"
)

func main() {
	var root map[string]interface{}
	if err := json.NewDecoder(os.Stdin).Decode(&root); err != nil { panic(err) }
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	all.Funcs(functions)
	paths, _ := filepath.Glob(os.Args[1] + "/templates/*")
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		template.Must(all.New("templates/" + filepath.Base(path)).Parse(string(text)))
	}
	rendered := map[string]string{}
	for _, path := range paths {
		var text bytes.Buffer
		name := "templates/" + filepath.Base(path)
		if err := all.ExecuteTemplate(&text, name, root); err != nil { panic(err) }
		rendered[name] = text.String()
	}
	out, _ := json.Marshal(rendered)
	fmt.Println(string(out))
}
`

async function chart(newer: string): Promise<void> {
  const cwd = dir.path
  await succeed(['tar', '-xzf', join(newer, `sightglass-${version}-helm.tgz`)], { cwd })
  writeFileSync(dir.join('render.go'), goRenderer)
  const files = chartFiles(version)
  const values = Bun.YAML.parse(files.get('values.yaml')!) as { [name: string]: object }
  const full = {
    ...values,
    config: { 'public-url': 'https://a.example', 'trusted-proxy': ['10.0.0.0/8'] },
    secret: 'more',
    postgresql: { ...values['postgresql'], secret: 'database' },
    ingress: { ...values['ingress'], enabled: true, className: 'nginx', host: 'a.example', tlsSecret: 'tls' },
  }
  for (const Values of [values, full]) {
    const chartInput = {
      Values,
      Release: { Name: 'main', Service: 'Helm', Namespace: 'n' },
      Chart: { AppVersion: version },
    }
    writeFileSync(dir.join('values.json'), JSON.stringify(chartInput))
    const env = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: dir.join('go') }
    const text = await succeed(['sh', '-c', 'go run render.go sightglass < values.json'], { cwd, env })
    const helmFiles = Object.entries(JSON.parse(text) as { [path: string]: string })
      .filter(([path, content]) => !path.endsWith('.tpl') && content.trim() !== '')
      .sort()
    expectEqual(
      "the chart as Go's templates render it",
      [...renderChart(files, chartInput)].sort(),
      helmFiles,
    )
  }
}

async function main(folder: string): Promise<void> {
  const older = join(folder, 'older')
  const newer = join(folder, 'newer')
  if (!existsSync(join(newer, 'SHA256SUMS'))) {
    await release(copySources(dir.join('sources'), olderVersion), older)
    const { privateKey } = generateKeyPairSync('ed25519')
    const key = dir.join('key.pem')
    writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await release(root, newer, '--key', key)
    await release(root, dir.join('again'), '--key', key)
    expectEqual('files of a release made twice', sums(dir.join('again')), sums(newer))
  }
  await glibc()
  await chart(newer)
  await npm(older, newer)
  await container(older, newer)
  await distributions(older, newer)
  dir.remove()
}

const { values } = parseArgs({ options: { full: { type: 'boolean' }, releases: { type: 'string' } } })
if (values.full) await main(values.releases ?? dir.path)
else console.log('--full makes two releases and installs, upgrades and removes their packages')
