/** Versions of a site's memory, their scores and changes. */
import { useSignal } from '@preact/signals'
import { ChangeMark } from '../../charts/headlines.tsx'
import { pointsOf } from '../../charts/headlines.tsx'
import { ApiError } from '../../api/api.ts'
import { Differences } from '../../components/json.tsx'
import { Problem } from '../../components/problem.tsx'
import { bytesText } from '../../text/format.ts'
import { type Difference, type MemoryVersion, registryApi } from '../../api/registry-api.ts'
import { Moment } from '../../components/time.tsx'
import { ScoreBar, scoreText } from './score.tsx'

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
function Version({ siteId, version, before, open }: VersionProps) {
  const found = useSignal<Difference[] | null>(null)
  const problem = useSignal<ApiError | null>(null)
  const asked = useSignal(false)
  const load = async (): Promise<void> => {
    if (asked.value || version.version === 1) return
    asked.value = true
    try {
      const answer = await registryApi.memoryVersion(siteId, version.version, new AbortController().signal)
      found.value = answer.differences
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      problem.value = error
      asked.value = false
    }
  }
  return (
    <li>
      <details open={open} onToggle={(event) => void (event.currentTarget.open && load())}>
        <summary>
          <span class="version-line">
            <b>Version {version.version}</b>
            <Moment iso={version.at} />
            <ScoreBar score={version.score} />
            <span>
              {scoreText(version.score)}
              {before !== null && (
                <small>
                  {' '}
                  <ChangeMark change={pointsOf(version.score / 100, before.score / 100)} />
                </small>
              )}
            </span>
            <span class="muted">{bytesText(version.bytes)}</span>
          </span>
        </summary>
        {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
        {version.version === 1 && <p class="muted">First version.</p>}
        {found.value !== null && <Found list={found.value} before={before} score={version.score} />}
      </details>
    </li>
  )
}

function Found(props: { list: Difference[]; before: MemoryVersion | null; score: number }) {
  const { list, before, score } = props
  if (list.length > 0) return <Differences list={list} />
  if (before === null) return <p class="muted">The previous version is no longer stored.</p>
  return (
    <p class="muted">
      The snapshot is unchanged; {before.score === score ? 'the source of its score' : 'its score'} changed.
    </p>
  )
}
