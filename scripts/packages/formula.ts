/** Writes the formula for Homebrew, which installs the executable of a release on macOS and Linux. */
import { packageInfo } from './system-files.ts'

interface FormulaFile {
  system: 'macos' | 'linux'
  cpu: 'arm' | 'intel'
  name: string
  sha256: string
}

/** Without `url` the formula takes the files beside it, as a release folder has them. */
export function formula(version: string, url: string | null, files: FormulaFile[]): string {
  const base = url === null ? 'file://#{__dir__}' : url.replace(/\/$/, '')
  const systems = (['macos', 'linux'] as const).flatMap((system) => {
    const blocks = files
      .filter((file) => file.system === system)
      .flatMap(({ cpu, name, sha256 }) => [
        `    on_${cpu} do`,
        `      url "${base}/${name}"`,
        `      sha256 "${sha256}"`,
        '    end',
      ])
    return blocks.length === 0 ? [] : [`  on_${system} do`, ...blocks, '  end', '']
  })
  return `class Sightglass < Formula
  desc "${packageInfo.summary.replace(/^\w/, (first) => first.toUpperCase())}"
  version "${version}"
  license "${packageInfo.license}"

${systems.join('\n')}
  def install
    bin.install Dir["sightglass-*"].first => "sightglass"
    chmod 0755, bin/"sightglass"
    generate_completions_from_executable(bin/"sightglass", "completions", shells: [:bash, :zsh, :fish])
    (man1/"sightglass.1").write Utils.safe_popen_read(bin/"sightglass", "man")
  end

  service do
    run [opt_bin/"sightglass", "serve", "--data-dir", var/"sightglass"]
    keep_alive true
    log_path var/"log/sightglass.log"
    error_log_path var/"log/sightglass.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sightglass version")
  end
end
`
}
