/** Writes a Debian package, with which dpkg installs, starts, upgrades and removes the service. */
import { unitName } from '../../server/operations/service/install.ts'
import { ar, contentOf, digest, gzip, isFolder, sizeOf, tar, withFolders, type Entry } from './archive.ts'
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

export type DebArchitecture = 'amd64' | 'arm64'

export function deb(systemPackage: SystemPackage, architecture: DebArchitecture): Uint8Array {
  const entries = systemFiles(systemPackage, {
    zsh: 'usr/share/zsh/vendor-completions/_sightglass',
    license: { path: 'usr/share/doc/sightglass/copyright', content: copyright },
  })
  const files = entries.filter((entry) => !isFolder(entry))
  const configuration = files.filter(isConfiguration)
  const otherFiles = files.filter((entry) => !isConfiguration(entry))
  const controlFiles: Entry[] = [
    { path: 'conffiles', content: lines(configuration.map(({ path }) => `/${path}`)) },
    { path: 'control', content: control(systemPackage.version, architecture, files) },
    {
      path: 'md5sums',
      content: lines(otherFiles.map((file) => `${digest('md5', contentOf(file))}  ${file.path}`)),
    },
    { path: 'postinst', content: postinst, mode: 0o755 },
    { path: 'postrm', content: postrm, mode: 0o755 },
    { path: 'prerm', content: prerm, mode: 0o755 },
  ]
  const members = [
    { name: 'debian-binary', content: Buffer.from('2.0\n') },
    { name: 'control.tar.gz', content: packed(controlFiles) },
    { name: 'data.tar.gz', content: packed(entries) },
  ]
  if (systemPackage.key === null) return ar(members)
  // debsig-verify reads it; dpkg and apt ignore members whose name begins with an underscore.
  const signature = systemPackage.key.sign(...members.map(({ content }) => content))
  return ar([...members, { name: '_gpgorigin', content: signature }])
}

const lines = (list: string[]): string => list.map((line) => `${line}\n`).join('')

const packed = (entries: Entry[]): Uint8Array =>
  gzip(tar(withFolders(entries.map((entry) => ({ ...entry, path: `./${entry.path}` })))))

const copyright = `Copyright ${packageInfo.maintainer.replace(/ <.*/, '')}
Licence: ${packageInfo.license}, in /usr/share/common-licenses/Apache-2.0
The components in the executable have licences of their own, in THIRD-PARTY-LICENSES.txt.
`

function control(version: string, architecture: DebArchitecture, files: Entry[]): string {
  const kibibytes = files.reduce((sum, file) => sum + Math.ceil(sizeOf(file) / 1_024), 0)
  return lines([
    `Package: ${packageInfo.name}`,
    `Version: ${packageVersion(version)}`,
    `Architecture: ${architecture}`,
    `Maintainer: ${packageInfo.maintainer}`,
    `Installed-Size: ${kibibytes}`,
    `Depends: libc6 (>= ${glibcMin}), passwd`,
    'Section: web',
    'Priority: optional',
    `Description: ${packageInfo.summary}`,
    ...packageInfo.description.map((line) => ` ${line}`),
  ])
}

/** As debhelper writes it: enables the unit unless the administrator disabled it, and starts it. */
const postinst = `#!/bin/sh
set -e
case "$1" in
  configure|abort-upgrade|abort-deconfigure|abort-remove) ;;
  *) exit 0 ;;
esac
${createAccount}${warnOfOtherUnit}deb-systemd-helper unmask ${unitName} >/dev/null || true
if deb-systemd-helper --quiet was-enabled ${unitName}; then
  deb-systemd-helper enable ${unitName} >/dev/null || true
else
  deb-systemd-helper update-state ${unitName} >/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
  if [ -n "$2" ]; then action=restart; else action=start; fi
  deb-systemd-invoke $action ${unitName} >/dev/null || true
fi
if [ -z "$2" ]; then
  echo 'sightglass: link to create the first owner: journalctl -u ${unitName} -o cat | grep setup'
fi
`

const prerm = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop ${unitName} >/dev/null || true
fi
`

const postrm = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
fi
case "$1" in
  remove)
    echo 'sightglass: the configuration and the data stay.' >&2
    ;;
  purge)
    if command -v deb-systemd-helper >/dev/null; then
      deb-systemd-helper purge ${unitName} >/dev/null || true
    fi
    ${dataStays.replaceAll('\n', '\n    ')}
    ;;
esac
`
