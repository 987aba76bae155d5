/** The versions of a tool, newest first, each with what changed against the one before. */
import { Differences } from '../../components/differences.tsx'
import { counted } from '../../text/format.ts'
import { Moment } from '../../components/moment.tsx'
import type { ToolVersion } from '../../api/registry-api.ts'

const words = {
  added: 'registered',
  changed: 'changed',
  removed: 'removed from the registry',
  restored: 'registered again',
} as const

export function Versions({ versions }: { versions: ToolVersion[] }) {
  const last = versions.at(-1)
  return (
    <section class="panel versions">
      <h3>Versions</h3>
      <ol>
        {versions.map((version, index) => (
          <li key={`${version.version} ${version.change} ${version.at}`}>
            <details open={index === 0 && version.differences.length > 0}>
              <summary>
                <b>Version {version.version}</b> {words[version.change]} <Moment iso={version.at} />
                {version.differences.length > 0 && (
                  <span class="muted"> · {counted(version.differences.length, 'change')}</span>
                )}
              </summary>
              {version.differences.length > 0 ? (
                <Differences list={version.differences} />
              ) : (
                <p class="muted">
                  {version.change === 'added' ? 'First version.' : 'The descriptor is unchanged.'}
                </p>
              )}
            </details>
          </li>
        ))}
      </ol>
      {last !== undefined && last.change !== 'added' && (
        <p class="muted">Older versions are stored but not listed here.</p>
      )}
    </section>
  )
}
