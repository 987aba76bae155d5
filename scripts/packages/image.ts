/**
 * Assembles a container image without a daemon: the executable, the C library that it needs, an account without rights
 * and a volume. The file is an OCI layout that Docker, Podman, containerd and skopeo load.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bytesOf, digest, gzip, tar, withFolders, type Entry, type Packed } from './archive.ts'
import { packageInfo, type PackageTexts } from './system-files.ts'

export type ImageArchitecture = 'amd64' | 'arm64'

/** The account and group in the image: not 0, and not one of the machine's. */
const account = 7400

interface Library {
  version: string // of Debian's package libc6
  files: Entry[]
}

/** Where Debian has the C library, and the loader that executables name. */
const places = {
  amd64: { folder: 'lib/x86_64-linux-gnu', loader: 'lib64/ld-linux-x86-64.so.2' },
  arm64: { folder: 'lib/aarch64-linux-gnu', loader: 'lib/ld-linux-aarch64.so.1' },
} as const

const libraryNames = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0']

/** Reads Debian's package: the one in `folder`, or what apt-get downloads. Throws where neither is possible. */
export async function readLibrary(architecture: ImageArchitecture, folder: string | null): Promise<Library> {
  const work = mkdtempSync(join(tmpdir(), 'sightglass-libc-'))
  try {
    if (folder === null) await download(architecture, work)
    const file = packageIn(architecture, folder ?? work)
    const version = await output(['dpkg-deb', '--field', file, 'Version'])
    await output(['dpkg-deb', '--extract', file, join(work, 'root')])
    return { version, files: libraryFiles(architecture, join(work, 'root')) }
  } finally {
    rmSync(work, { recursive: true })
  }
}

/** In folders of its own, so that the machine's apt does not change; the sources are the machine's. */
async function download(architecture: ImageArchitecture, work: string): Promise<void> {
  const options = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Dir::State': join(work, 'state'),
    'Dir::Cache': join(work, 'cache'),
    'Dir::State::status': join(work, 'status'),
  }
  const apt = ['apt-get', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])]
  await output(['mkdir', '-p', join(work, 'state/lists/partial'), join(work, 'cache/archives/partial')])
  await output(['touch', join(work, 'status')])
  await output([...apt, 'update'])
  await output([...apt, 'download', `libc6:${architecture}`], work)
}

function packageIn(architecture: ImageArchitecture, folder: string): string {
  const ending = `_${architecture}.deb`
  const name = readdirSync(folder).find(
    (packageName) => packageName.startsWith('libc6_') && packageName.endsWith(ending),
  )
  if (name === undefined) throw new Error(`${folder} has no package libc6_…${ending}`)
  return join(folder, name)
}

async function output(args: string[], cwd = tmpdir()): Promise<string> {
  const child = Bun.spawn(args, { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [code, text, problem] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  if (code !== 0) throw new Error(`${args[0]} ${args.at(-1)}: ${problem.trim()}`)
  return text.trim()
}

function libraryFiles(architecture: ImageArchitecture, root: string): Entry[] {
  const { folder, loader } = places[architecture]
  const read = (path: string): Buffer => readFileSync(join(root, path)) // follows links inside the folder
  const name = loader.slice(loader.lastIndexOf('/') + 1)
  return [
    ...libraryNames.map((libraryName) => ({
      path: `${folder}/${libraryName}`,
      content: read(`${folder}/${libraryName}`),
      mode: 0o755,
    })),
    { path: loader, content: read(`${folder}/${name}`), mode: 0o755 },
    { path: 'usr/share/doc/libc6/copyright', content: read('usr/share/doc/libc6/copyright') },
  ]
}

interface ImageParts {
  version: string
  executable: Packed
  library: Library
  texts: Pick<PackageTexts, 'license' | 'thirdParty'>
  architecture: ImageArchitecture
}

/** The base changes with the C library only, so that an upgrade transfers just the other layer. */
export function image({ version, executable, library, texts, architecture }: ImageParts): Uint8Array {
  const base: Entry[] = [
    { path: 'data/', mode: 0o700, owner: account },
    { path: 'etc/group', content: `root:x:0:\nsightglass:x:${account}:\n` },
    { path: 'etc/nsswitch.conf', content: 'hosts: files dns\n' },
    {
      path: 'etc/passwd',
      content: `root:x:0:0::/:/none\nsightglass:x:${account}:${account}::/data:/none\n`,
    },
    { path: 'tmp/', mode: 0o1777 },
    ...library.files,
  ]
  const productFiles: Entry[] = [
    { path: 'usr/bin/sightglass', content: executable, mode: 0o755 },
    { path: 'usr/share/doc/sightglass/LICENSE', content: texts.license },
    { path: 'usr/share/doc/sightglass/THIRD-PARTY-LICENSES.txt', content: texts.thirdParty },
  ]
  const layers = [base, productFiles].map((entries) => {
    const parts = tar(withFolders(entries))
    return { diffId: `sha256:${digest('sha256', ...parts)}`, bytes: gzip(parts) }
  })
  const config = json(configuration(version, architecture, library.version, layers))
  return layout(
    version,
    architecture,
    config,
    layers.map(({ bytes }) => bytes),
  )
}

const epoch = '1970-01-01T00:00:00Z'
const second = 1_000_000_000

function configuration(
  version: string,
  architecture: ImageArchitecture,
  libraryVersion: string,
  layers: { diffId: string }[],
): object {
  return {
    created: epoch,
    architecture,
    os: 'linux',
    config: {
      User: `${account}:${account}`,
      ExposedPorts: { '7400/tcp': {} },
      Env: ['PATH=/usr/bin', 'SIGHTGLASS_DATA_DIR=/data', 'SIGHTGLASS_LISTEN=0.0.0.0:7400'],
      Entrypoint: ['/usr/bin/sightglass'],
      Cmd: ['serve'],
      Volumes: { '/data': {} },
      WorkingDir: '/data',
      StopSignal: 'SIGTERM',
      Healthcheck: {
        Test: ['CMD', '/usr/bin/sightglass', 'ready'],
        Interval: 30 * second,
        Timeout: 10 * second,
        StartPeriod: 60 * second,
      },
      Labels: {
        'org.opencontainers.image.title': packageInfo.name,
        'org.opencontainers.image.description': packageInfo.summary,
        'org.opencontainers.image.licenses': `${packageInfo.license} AND LGPL-2.1-or-later`,
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.base.name': `libc6 ${libraryVersion} of Debian`,
      },
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: ['C library, account, volume', `sightglass ${version}`].map((comment) => ({
      created: epoch,
      comment,
    })),
  }
}

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))

const oci = 'application/vnd.oci.image'

/** Has `manifest.json` too, which Docker before release 25 reads. */
function layout(
  version: string,
  architecture: ImageArchitecture,
  config: Uint8Array,
  layers: Uint8Array[],
): Uint8Array {
  const blob = (content: Uint8Array): string => `blobs/sha256/${digest('sha256', content)}`
  const describe = (mediaType: string, content: Uint8Array) => {
    return { mediaType, digest: `sha256:${digest('sha256', content)}`, size: content.length }
  }
  const manifest = json({
    schemaVersion: 2,
    mediaType: `${oci}.manifest.v1+json`,
    config: describe(`${oci}.config.v1+json`, config),
    layers: layers.map((layer) => describe(`${oci}.layer.v1.tar+gzip`, layer)),
  })
  const name = `${packageInfo.name}:${version}`
  const index = json({
    schemaVersion: 2,
    mediaType: `${oci}.index.v1+json`,
    manifests: [
      {
        ...describe(`${oci}.manifest.v1+json`, manifest),
        platform: { architecture, os: 'linux' },
        annotations: {
          'io.containerd.image.name': `docker.io/library/${name}`,
          'org.opencontainers.image.ref.name': version,
        },
      },
    ],
  })
  const entries: Entry[] = [
    ...[config, manifest, ...layers].map((content) => ({ path: blob(content), content })),
    { path: 'index.json', content: index },
    {
      path: 'manifest.json',
      content: json([{ Config: blob(config), RepoTags: [name], Layers: layers.map(blob) }]),
    },
    { path: 'oci-layout', content: json({ imageLayoutVersion: '1.0.0' }) },
  ]
  return Buffer.concat(tar(withFolders(entries)).map(bytesOf))
}
