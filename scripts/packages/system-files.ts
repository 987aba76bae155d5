/**
 * What a package of a Linux distribution installs: the executable, its unit, manual and completions, the files in
 * /etc/sightglass. And what such a package says about itself.
 */
import { environmentFile, stateFolder, unitName, unitText } from '../../server/operations/service/install.ts'
import type { Entry, Packed } from './archive.ts'
import type { OpenPgpKey } from './openpgp.ts'

export interface PackageTexts {
  manual: string
  completions: { bash: string; zsh: string; fish: string }
  license: string
  changelog: string
  thirdParty: string // licences
}

export interface SystemPackage {
  version: string
  executable: Packed
  texts: PackageTexts
  key: OpenPgpKey | null // null: not signed
}

export const packageInfo = {
  name: 'sightglass',
  license: 'Apache-2.0',
  maintainer: 'The Sightglass authors <packages@sightglass.invalid>',
  summary: 'record of the AI agents that visit your site',
  description: [
    'Sightglass records which AI agents visit your site: crawlers, browser agents',
    'and WebMCP clients. It is one executable with its own database. It needs no',
    'other service and sends nothing to anybody.',
  ],
}

/** 1.0.0-rc.1 comes before 1.0.0; in a version of RPM and Debian a hyphen separates something else. */
export const packageVersion = (version: string): string => version.replace('-', '~')

/** The C library that the executable needs: the newest version of a symbol that it names. */
export const glibcMin = '2.17'

const configFile = '/etc/sightglass/sightglass.toml'

const configText = `# Options of "sightglass serve", one per line; "sightglass help serve" lists them. Secrets belong in
# ${environmentFile}. After a change: systemctl restart sightglass
# Commands need the same options: sightglass doctor --config ${configFile}
data-dir = "${stateFolder}"
# listen = "0.0.0.0:7400"
# public-url = "https://tools.example"
`

const environmentText = `# Secrets of the service, one per line, such as:
# SIGHTGLASS_BACKUP_PASSPHRASE=...
`

/** Files that an upgrade does not replace when the administrator changed them. */
export const isConfiguration = ({ path }: Entry): boolean => path.startsWith('etc/') && !path.endsWith('/')

/** `places` differ between distributions. */
export function systemFiles(
  { executable, texts }: Pick<SystemPackage, 'executable' | 'texts'>,
  places: { zsh: string; license: Entry },
): Entry[] {
  const unit = unitText({
    executable: '/usr/bin/sightglass',
    flags: [`--config=${configFile}`],
    lowPort: false,
    writableFolders: [],
    runtimeFolder: true,
    account: 'static',
  })
  return [
    { path: 'etc/sightglass/' },
    { path: environmentFile.slice(1), content: environmentText, mode: 0o600 },
    { path: configFile.slice(1), content: configText },
    { path: 'usr/bin/sightglass', content: executable, mode: 0o755 },
    { path: `usr/lib/systemd/system/${unitName}`, content: unit },
    {
      path: 'usr/share/bash-completion/completions/sightglass',
      content: texts.completions.bash,
    },
    { path: 'usr/share/doc/sightglass/' },
    { path: 'usr/share/doc/sightglass/CHANGELOG.md', content: texts.changelog },
    { path: 'usr/share/doc/sightglass/THIRD-PARTY-LICENSES.txt', content: texts.thirdParty },
    places.license,
    { path: 'usr/share/fish/vendor_completions.d/sightglass.fish', content: texts.completions.fish },
    {
      path: 'usr/share/man/man1/sightglass.1.gz',
      content: Bun.gzipSync(texts.manual, { library: 'libdeflate', level: 9 }),
    },
    { path: places.zsh, content: texts.completions.zsh },
  ]
}

/** The account stays when the package is removed, because the data belongs to it. */
export const createAccount = `if ! getent passwd sightglass >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir ${stateFolder} --shell /usr/sbin/nologin sightglass
fi
`

/** A unit of `sightglass service install` has precedence over the one of the package. */
export const warnOfOtherUnit = `if [ -e /etc/systemd/system/${unitName} ]; then
  echo 'sightglass: /etc/systemd/system/${unitName} replaces the unit of this package. To use that of the package:' >&2
  echo '  sightglass service uninstall && systemctl enable --now sightglass' >&2
fi
`

export const dataStays = `if [ -e ${stateFolder} ]; then
  echo 'sightglass: the data in ${stateFolder} stays. To delete it: rm -r ${stateFolder}; userdel sightglass' >&2
fi`
