/** The quality score of a site's memory, and its versions with their scores and changes. */
import { useSignal } from '@preact/signals'
import { ChangeMark, pointsOf } from '../../charts/headlines.tsx'
import { useQuery } from '../../query/use-query.ts'
import { Differences } from '../../components/json.tsx'
import { Problem } from '../../components/problem.tsx'
import { bytesText } from '../../text/format.ts'
import { registryApi, type Memory, type MemoryVersion } from '../../api/registry-api.ts'
import { Moment } from '../../components/time.tsx'
import { scoreParts, scoreWith } from './snapshot.ts'

const oneDigit = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 })

export function scoreText(score: number): string {
  return oneDigit.format(score)
}

export function ScoreBar({ score }: { score: number }) {
  return (
    <span class="score-bar" aria-hidden="true">
      <i style={{ width: `${Math.max(0, Math.min(100, score))}%` }} />
    </span>
  )
}

/** The score: its source, its parts, and how to raise it. */
export function Score({ memory, before: previousVersion }: { memory: Memory; before: MemoryVersion | null }) {
  const parts = scoreParts(memory.snapshot)
  const filled = parts.filter((part) => part.filled).length
  const missing = parts.filter((part) => !part.filled)
  const computedScore = scoreWith(filled)
  return (
    <section class="panel lead score" aria-label="Score">
      <div class="score-number">
        <strong>{scoreText(memory.score)}</strong> <span class="muted">of 100</span>
        <ScoreBar score={memory.score} />
        <small>
          {previousVersion !== null && (
            <>
              <ChangeMark change={pointsOf(memory.score / 100, previousVersion.score / 100)} /> from{' '}
              {scoreText(previousVersion.score)} in version {previousVersion.version}.{' '}
            </>
          )}
          {memory.scoreComputed
            ? `Computed: ${filled} of ${parts.length} parts are filled.`
            : `Sent with the snapshot. The computed score would be ${computedScore}.`}
        </small>
      </div>
      <ul class="score-parts">
        {parts.map((part) => (
          <li key={part.name} class={part.filled ? 'filled' : 'missing'}>
            <span aria-hidden="true">{part.filled ? '✓' : '–'}</span>
            <span>
              <code>{part.name}</code> <span class="muted">{part.purpose}</span>
              <span class="visually-hidden">{part.filled ? ', filled' : ', missing'}</span>
            </span>
          </li>
        ))}
      </ul>
      <p>
        {missing.length === 0 ? (
          'All parts are filled.'
        ) : (
          <>
            <b>To raise the score:</b> add <code>{missing[0]?.name}</code>
            {memory.scoreComputed && ` (raises it to ${scoreWith(filled + 1)})`}.
            {missing.length > 1 && ` ${missing.length} parts are missing.`}
          </>
        )}
      </p>
    </section>
  )
}

const shownMax = 20

export function History({ siteId, versions }: { siteId: string; versions: MemoryVersion[] }) {
  const whole = useSignal(false)
  const shown = whole.value ? versions : versions.slice(0, shownMax)
  return (
    <section class="panel lead versions">
      <h3>Versions</h3>
      <ol>
        {shown.map((version, index) => (
          <Version
            key={version.version}
            siteId={siteId}
            version={version}
            before={versions[index + 1] ?? null}
            open={index === 0 && versions.length > 1}
          />
        ))}
      </ol>
      {shown.length < versions.length && (
        <button type="button" class="button" onClick={() => (whole.value = true)}>
          Show all {versions.length}
        </button>
      )}
    </section>
  )
}

interface VersionProps {
  siteId: string
  version: MemoryVersion
  before: MemoryVersion | null
  open: boolean
}

/** The differences are fetched when the version is opened. */
function Version({ siteId, version, before: previousVersion, open }: VersionProps) {
  const wasOpened = useSignal(false)
  return (
    <li>
      <details open={open} onToggle={(event) => (wasOpened.value ||= event.currentTarget.open)}>
        <summary>
          <span class="version-line">
            <b>Version {version.version}</b>
            <Moment iso={version.at} />
            <ScoreBar score={version.score} />
            <span>
              {scoreText(version.score)}
              {previousVersion !== null && (
                <small>
                  {' '}
                  <ChangeMark change={pointsOf(version.score / 100, previousVersion.score / 100)} />
                </small>
              )}
            </span>
            <span class="muted">{bytesText(version.bytes)}</span>
          </span>
        </summary>
        {version.version === 1 && <p class="muted">First version.</p>}
        {wasOpened.value && version.version > 1 && (
          <Changes siteId={siteId} version={version} before={previousVersion} />
        )}
      </details>
    </li>
  )
}

function Changes({ siteId, version, before: previousVersion }: Omit<VersionProps, 'open'>) {
  const { data, error, refetch } = useQuery({
    key: `memory changes/${JSON.stringify([siteId, version.version])}`,
    fetch: (signal) => registryApi.memoryVersion(siteId, version.version, signal),
  })
  if (error) return <Problem error={error} onRetry={refetch} />
  if (data === null) return null
  if (data.differences.length > 0) return <Differences list={data.differences} />
  if (previousVersion === null) return <p class="muted">The previous version is no longer stored.</p>
  return (
    <p class="muted">
      The snapshot is unchanged;{' '}
      {previousVersion.score === version.score ? 'the source of its score' : 'its score'} changed.
    </p>
  )
}
