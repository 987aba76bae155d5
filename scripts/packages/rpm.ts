/** Writes an RPM (format 4), with which dnf, zypper and rpm install, upgrade and remove the service. */
import { unitName } from '../../server/operations/service/install.ts'
import {
  contentOf,
  cpio,
  digest,
  gzip,
  isFolder,
  modifiedAt,
  sizeOf,
  typedMode,
  type Entry,
  type Part,
} from './archive.ts'
import {
  packageInfo,
  createAccount,
  dataStays,
  glibcMin,
  isConfiguration,
  packageVersion,
  systemFiles,
  warnOfOtherUnit,
  type SystemPackage,
} from './system-files.ts'

export type RpmArchitecture = 'x86_64' | 'aarch64'

/** The second part of the version; a rebuild of the same sources gives the same bytes, so it never grows. */
export const rpmRelease = '1'

export function rpm(systemPackage: SystemPackage, architecture: RpmArchitecture): Uint8Array {
  const files = systemFiles(systemPackage, {
    zsh: 'usr/share/zsh/site-functions/_sightglass',
    license: { path: 'usr/share/licenses/sightglass/LICENSE', content: systemPackage.texts.license },
  })
  const parts = cpio(files)
  const payload = gzip(parts)
  const header = writeHeader(63, [
    ...aboutTags(systemPackage.version, architecture, files),
    ...fileTags(files),
    ...dependencyTags(systemPackage.version),
    ...scriptTags(),
    ...payloadTags(parts, payload),
  ])
  const signature = writeHeader(62, [
    // As `rpmsign` writes it for Ed25519.
    ...(systemPackage.key === null ? [] : [binary(267, systemPackage.key.sign(header))]),
    text(269, digest('sha1', header)),
    text(273, digest('sha256', header)),
    int32(1000, header.length + payload.length),
    binary(1004, Buffer.from(digest('md5', header, payload), 'hex')),
    int32(1007, sizeOfParts(parts)),
  ])
  const padding = Buffer.alloc(-signature.length & 7)
  return Buffer.concat([lead(systemPackage.version, architecture), signature, padding, header, payload])
}

const sizeOfParts = (parts: Part[]): number =>
  parts.reduce((sum, part) => sum + ('gzip' in part ? part.bytes : part).length, 0)

/** Obsolete, but every reader expects it. */
function lead(version: string, architecture: RpmArchitecture): Uint8Array {
  const bytes = Buffer.alloc(96)
  bytes.writeUInt32BE(0xedabeedb)
  bytes.writeUInt8(3, 4)
  bytes.writeUInt16BE(architecture === 'x86_64' ? 1 : 19, 8)
  bytes.write(`${packageInfo.name}-${version}-${rpmRelease}`.slice(0, 65), 10)
  bytes.writeUInt16BE(1, 76) // Linux
  bytes.writeUInt16BE(5, 78) // the signature is a header
  return bytes
}

/** An entry of a header, with its value as the store holds it. */
interface Tag {
  tag: number
  type: number
  count: number
  value: Uint8Array
}

const types = { int16: 3, int32: 4, string: 6, binary: 7, strings: 8, translated: 9 }
const alignments: { [type: number]: number } = { [types.int16]: 2, [types.int32]: 4 }

const text = (tag: number, value: string): Tag => strings(tag, [value], types.string)

function strings(tag: number, list: string[], type = types.strings): Tag {
  return { tag, type, count: list.length, value: Buffer.from(list.map((item) => `${item}\0`).join('')) }
}

function binary(tag: number, value: Uint8Array): Tag {
  return { tag, type: types.binary, count: value.length, value }
}

function int32(tag: number, ...list: number[]): Tag {
  const value = Buffer.alloc(4 * list.length)
  list.forEach((number, index) => value.writeUInt32BE(number, 4 * index))
  return { tag, type: types.int32, count: list.length, value }
}

function int16(tag: number, ...list: number[]): Tag {
  const value = Buffer.alloc(2 * list.length)
  list.forEach((number, index) => value.writeUInt16BE(number, 2 * index))
  return { tag, type: types.int16, count: list.length, value }
}

/** The region marks all of it as what digests cover: an entry before all, whose value is the last of the store. */
function writeHeader(region: number, unsorted: Tag[]): Uint8Array {
  const tags = unsorted.toSorted((a, b) => a.tag - b.tag)
  const store: Uint8Array[] = []
  let offset = 0
  const index = tags.map(({ tag, type, count, value }) => {
    const gap = -offset & ((alignments[type] ?? 1) - 1)
    store.push(Buffer.alloc(gap), value)
    offset += gap
    const entry = int32(0, tag, type, offset, count).value
    offset += value.length
    return entry
  })
  const trailer = int32(0, region, types.binary, 2 ** 32 - 16 * (tags.length + 1), 16).value
  const first = int32(0, region, types.binary, offset, 16).value
  const magic = int32(0, 0x8eade801, 0, tags.length + 1, offset + 16).value
  return Buffer.concat([magic, first, ...index, ...store, trailer])
}

function aboutTags(version: string, architecture: RpmArchitecture, files: Entry[]): Tag[] {
  return [
    strings(100, ['C']),
    text(1000, packageInfo.name),
    text(1001, packageVersion(version)),
    text(1002, rpmRelease),
    strings(1004, [packageInfo.summary], types.translated),
    strings(1005, [packageInfo.description.join('\n')], types.translated),
    int32(1006, modifiedAt), // time of the build
    text(1007, 'localhost'),
    int32(
      1009,
      files.reduce((sum, file) => sum + sizeOf(file), 0),
    ),
    text(1014, packageInfo.license),
    text(1015, packageInfo.maintainer),
    strings(1016, ['Unspecified'], types.translated),
    text(1021, 'linux'),
    text(1022, architecture),
    text(1044, `${packageInfo.name}-${packageVersion(version)}-${rpmRelease}.src.rpm`),
    text(5062, 'utf-8'),
  ]
}

const fileFlags = { configuration: 1 | 16, document: 2, none: 0 } // 16: an upgrade does not replace it

function flagsOf(entry: Entry): number {
  if (isConfiguration(entry)) return fileFlags.configuration
  return entry.path.startsWith('usr/share/doc/') ? fileFlags.document : fileFlags.none
}

function fileTags(files: Entry[]): Tag[] {
  const paths = files.map(({ path }) => `/${path.replace(/\/$/, '')}`)
  const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1)
  const folders = [...new Set(paths.map(folderOf))]
  const repeatPerFile = <T>(value: T): T[] => files.map(() => value)
  return [
    int32(1028, ...files.map(sizeOf)),
    int16(1030, ...files.map(typedMode)),
    int16(1033, ...repeatPerFile(0)), // device of a special file
    int32(1034, ...repeatPerFile(modifiedAt)),
    strings(
      1035,
      files.map((file) => (isFolder(file) ? '' : digest('sha256', contentOf(file)))),
    ),
    strings(1036, repeatPerFile('')), // target of a link
    int32(1037, ...files.map(flagsOf)),
    strings(1039, repeatPerFile('root')),
    strings(1040, repeatPerFile('root')),
    int32(1045, ...repeatPerFile(0xffffffff)), // verify everything
    int32(1095, ...repeatPerFile(1)), // device
    int32(1096, ...files.map((_, index) => index + 1)), // inode
    strings(1097, repeatPerFile('')), // language
    int32(1116, ...paths.map((path) => folders.indexOf(folderOf(path)))),
    strings(
      1117,
      paths.map((path) => path.slice(folderOf(path).length)),
    ),
    strings(1118, folders),
    int32(5011, 8), // the digests are SHA-256
  ]
}

const senses = { any: 0, less: 2, equal: 8, rpmlib: 1 << 24, before: 512 }

function dependencyTags(version: string): Tag[] {
  const requires: [name: string, flags: number, version: string][] = [
    ['/bin/sh', senses.any, ''],
    ['/usr/sbin/useradd', senses.before, ''],
    [`libc.so.6(GLIBC_${glibcMin})(64bit)`, senses.any, ''],
    ['rpmlib(CompressedFileNames)', senses.rpmlib | senses.less | senses.equal, '3.0.4-1'],
    ['rpmlib(FileDigests)', senses.rpmlib | senses.less | senses.equal, '4.6.0-1'],
    ['rpmlib(PayloadFilesHavePrefix)', senses.rpmlib | senses.less | senses.equal, '4.0-1'],
  ]
  return [
    strings(1047, [packageInfo.name]),
    int32(1112, senses.equal),
    strings(1113, [`${packageVersion(version)}-${rpmRelease}`]),
    int32(1048, ...requires.map(([, flags]) => flags)),
    strings(
      1049,
      requires.map(([name]) => name),
    ),
    strings(
      1050,
      requires.map(([, , dependency]) => dependency),
    ),
  ]
}

function scriptTags(): Tag[] {
  const scripts: [tag: number, interpreterTag: number, script: string][] = [
    [1023, 1085, createAccount],
    [1024, 1086, afterInstall],
    [1025, 1087, beforeRemoval],
    [1026, 1088, afterRemoval],
  ]
  return scripts.flatMap(([tag, interpreterTag, script]) => [
    text(tag, script),
    text(interpreterTag, '/bin/sh'),
  ])
}

/** Distributions with RPM decide by presets what is enabled, and start nothing at installation. */
const afterInstall = `${warnOfOtherUnit}if command -v systemctl >/dev/null; then
  if [ "$1" -eq 1 ]; then
    systemctl --no-reload preset ${unitName} >/dev/null 2>&1 || :
    echo 'sightglass: to start it: systemctl enable --now ${unitName}'
  fi
  systemctl daemon-reload >/dev/null 2>&1 || :
fi
`

const beforeRemoval = `if [ "$1" -eq 0 ] && command -v systemctl >/dev/null; then
  systemctl --no-reload disable --now ${unitName} >/dev/null 2>&1 || :
fi
`

const afterRemoval = `if command -v systemctl >/dev/null; then
  systemctl daemon-reload >/dev/null 2>&1 || :
  if [ "$1" -ge 1 ]; then systemctl try-restart ${unitName} >/dev/null 2>&1 || :; fi
fi
if [ "$1" -eq 0 ]; then
  ${dataStays.replaceAll('\n', '\n  ')}
fi
`

function payloadTags(parts: Part[], payload: Uint8Array): Tag[] {
  return [
    text(1124, 'cpio'),
    text(1125, 'gzip'),
    text(1126, '9'),
    strings(5092, [digest('sha256', payload)]),
    int32(5093, 8),
    strings(5097, [digest('sha256', ...parts)]), // of what is compressed in it
  ]
}
