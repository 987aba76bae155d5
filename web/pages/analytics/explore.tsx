/** Explore: any measure by any field or member of metadata, as lines, stacked bars or a table. The URL is the state. */
import './explore.css'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { batch, signal, useComputed, useSignalEffect } from '@preact/signals'
import { api, type ApiError, type ExploreAnswer } from '../../api/api.ts'
import { zone } from '../../app/clock.ts'
import { place, query } from '../../app/router.ts'
import { asApiError, overview } from '../../app/session.ts'
import { FirstEvent } from '../../components/page-frame.tsx'
import { Problem } from '../../components/problem.tsx'
import { readCache, writeCache } from '../../query/query.ts'
import { refreshTotals, useSameRange } from '../../range/counts-query.ts'
import { RangeBar } from '../../range/range-bar.tsx'
import { ShareButton, sharedRange } from '../../range/share.tsx'
import { explorePath, requestOf } from './explore-model.ts'
import { Question } from './explore-question.tsx'
import { Result } from './explore-result.tsx'

/** The tabs of Analytics. */
export function AnalyticsTabs({ shown }: { shown: 'summary' | 'explore' }) {
  const tab = (name: 'summary' | 'explore', label: string, href: string) => (
    <a href={href} aria-current={shown === name ? 'page' : undefined}>
      {label}
    </a>
  )
  return (
    <nav class="page-tabs" aria-label="Analytics">
      {tab('summary', 'Summary', '/analytics')}
      {tab('explore', 'Explore', '/analytics/explore')}
    </nav>
  )
}

/** A query in flight can be cancelled; its answer is cached for going back. */
function createExplorer() {
  const state = signal<{
    answer: ExploreAnswer | null
    error: ApiError | null
    progress: number | null // null: not running
    isCancelled: boolean
  }>({ answer: null, error: null, progress: null, isCancelled: false })
  let running = new AbortController()
  const change = (to: Partial<typeof state.value>): void => void (state.value = { ...state.peek(), ...to })

  async function run(params: string): Promise<void> {
    running.abort()
    const { signal: stop } = (running = new AbortController())
    const key = `explore?${params}`
    const cached = readCache<ExploreAnswer>(key)
    change({ ...(cached && { answer: cached }), error: null, progress: 0, isCancelled: false })
    try {
      const answer = await api.explore(new URLSearchParams(params), stop, (progress) => {
        if (!stop.aborted) change({ progress })
      })
      if (stop.aborted) return
      writeCache(key, answer)
      change({ answer, progress: null })
    } catch (cause) {
      if (!stop.aborted) change({ error: asApiError(cause), progress: null })
    }
  }

  return {
    state,
    run,
    stop: () => running.abort(),
    cancel(): void {
      running.abort()
      batch(() => change({ progress: null, isCancelled: true }))
    },
  }
}

type Explorer = ReturnType<typeof createExplorer>

export function Explore() {
  useSameRange(explorePath)
  const explorer = useMemo(createExplorer, [])
  const params = useComputed(() => `${requestOf(query.value, zone.value)}`)
  useSignalEffect(() => {
    // While another page loads, the URL already belongs to it.
    if (place.value.path === explorePath) void explorer.run(params.value)
  })
  useEffect(() => explorer.stop, [])
  // The navigation counts the range regardless of the query.
  useEffect(() => void (explorer.state.value.answer && refreshTotals()), [explorer.state.value.answer])
  const { answer, error, progress } = explorer.state.value
  const isNew = overview.value?.total === 0
  return (
    <>
      <RangeBar
        title="Analytics"
        period={answer?.period ?? null}
        compares={false}
        more={
          <ShareButton
            page="explore"
            search={() => `?${params.peek()}`}
            about={sharedRange(answer?.period ?? null)}
          />
        }
      />
      <div class="page counts-page explore-page" aria-busy={progress !== null}>
        <AnalyticsTabs shown="explore" />
        {isNew ? (
          <FirstEvent
            title="No events yet"
            lead="Explore measures events of every type."
            kind="agent"
            watch
          />
        ) : (
          <>
            <Question onRefresh={() => void explorer.run(params.peek())} />
            <Running explorer={explorer} onRun={() => void explorer.run(params.peek())} />
            {error && (
              <Problem error={error} onRetry={() => void explorer.run(params.peek())}>
                {error.code === 'invalid_query' && (
                  <a class="button" href={explorePath}>
                    Reset
                  </a>
                )}
              </Problem>
            )}
            {answer && (
              <div class={progress !== null || error ? 'counts stale' : 'counts'}>
                <Result answer={answer} />
              </div>
            )}
          </>
        )}
      </div>
    </>
  )
}

/** A query that takes longer than half a second shows its progress. */
const quietMs = 500

function Running({ explorer, onRun }: { explorer: Explorer; onRun: () => void }) {
  const { progress, isCancelled, answer } = explorer.state.value
  const isRunning = progress !== null
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    setSlow(false)
    if (!isRunning) return undefined
    const timer = setTimeout(() => setSlow(true), quietMs)
    return () => clearTimeout(timer)
  }, [isRunning])
  if (isCancelled)
    return (
      <p class="explore-running" role="status">
        Query cancelled. {answer && 'The numbers below are from an earlier query.'}
        <button type="button" class="button" onClick={onRun}>
          Run again
        </button>
      </p>
    )
  if (!isRunning || !isSlow) return null
  const percent = Math.floor((progress ?? 0) * 100)
  return (
    <p class="explore-running">
      <progress aria-label="Query progress" max={100} value={percent} />
      <span class="muted">{percent} % of the events read</span>
      <button type="button" class="button" onClick={explorer.cancel}>
        Cancel
      </button>
    </p>
  )
}
