/** One tool: findings, use, description, input, output and versions. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ApiError, api, type PeriodView, type Quantiles } from '../../api/api.ts'
import { Differences, JsonView, fieldText, pathLabel } from '../../components/json.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { count, counted, exactDuration, fullTime, utcTime } from '../../text/format.ts'
import { logsHref } from '../../range/filters.tsx'
import { rangeWords } from '../../range/range.ts'
import { registryApi, type ToolHistory, type ToolVersion } from '../../api/registry-api.ts'
import { place, withQuery } from '../../app/router.ts'
import { findingNames, lint, type Finding } from './lint.ts'
import { SchemaView } from './schema.tsx'
import { Moment } from '../../components/time.tsx'
import type { ToolRow } from './rows.ts'

interface Opened extends ToolHistory {
  json: string // the newest descriptor, digits unchanged
}

interface ToolDetailProps {
  siteId: string
  name: string
  row: ToolRow | null
  period: PeriodView | null
}

export function ToolDetail({ siteId, name, row, period }: ToolDetailProps) {
  const opened = useSignal<Opened | null>(null)
  const lastCall = useSignal<string | null>(null)
  const problem = useSignal<ApiError | null>(null)
  const newest = `${row?.version ?? 0}` // a push that changes the tool fetches it again
  useEffect(() => {
    const stop = new AbortController()
    load(siteId, name, stop.signal).then(
      (result) => (opened.value = result),
      (error: unknown) => {
        if (stop.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        problem.value = error
      },
    )
    return () => stop.abort()
  }, [newest])
  useLastCall(siteId, name, row?.calls ?? 0, lastCall)
  const back = place.value.path + withQuery(place.value.search, { site: [], tool: [] })
  const unknown = problem.value?.code === 'not_found'
  return (
    <article class="tool-detail" aria-busy={!opened.value && !problem.value}>
      <p>
        <a href={back}>← All tools</a>
      </p>
      <header>
        <h2>
          <Text value={name} max={128} mono />
        </h2>
        {opened.value && <State opened={opened.value} />}
      </header>
      {unknown && (
        <p class="panel lead">
          Agents called this tool on <Text value={siteId} max={80} />, but the site’s registry does not
          contain it. Register the tool, or find out who calls it.
        </p>
      )}
      {problem.value && !unknown && <Problem error={problem.value} />}
      {opened.value && <FindingList findings={lint(name, opened.value.tool.tool)} />}
      <Use row={row} siteId={siteId} name={name} period={period} lastCall={lastCall.value} />
      {opened.value && <Descriptor opened={opened.value} />}
    </article>
  )
}

async function load(siteId: string, name: string, signal: AbortSignal): Promise<Opened> {
  const text = await registryApi.toolText(siteId, name, signal)
  const json = fieldText(fieldText(text, 'tool') ?? '{}', 'tool') ?? '{}'
  return { ...(JSON.parse(text) as ToolHistory), json }
}

/** Counts have the hour; the newest event has the exact time. */
function useLastCall(siteId: string, name: string, calls: number, last: { value: string | null }): void {
  useEffect(() => {
    const stop = new AbortController()
    const params = new URLSearchParams({ type: 'tool.executed', tool: name, siteId, limit: '1' })
    api.eventsWhere(params, stop.signal).then(
      (page) => (last.value = page.events[0]?.event.occurredAt ?? null),
      (error: unknown) => {
        // Optional: without the event, the counts provide the hour.
        if (!(error instanceof ApiError) && !stop.signal.aborted) throw error
      },
    )
    return () => stop.abort()
  }, [calls])
}

function State({ opened }: { opened: Opened }) {
  const { tool } = opened
  return (
    <p class="tool-state">
      <span class={tool.removedAt === null && tool.enabled ? 'chip allow' : 'chip plain'}>
        {tool.removedAt !== null ? 'removed' : tool.enabled ? 'enabled' : 'disabled'}
      </span>
      <span>
        version {tool.version}, changed <Moment iso={tool.changedAt} />
      </span>
      <span class="muted">
        on <Text value={tool.siteId} max={60} mono />
      </span>
    </p>
  )
}

function FindingList({ findings }: { findings: Finding[] }) {
  if (findings.length === 0) return null
  return (
    <section class="panel findings">
      <h3>{counted(findings.length, 'finding')}</h3>
      <ul>
        {findings.map((finding) => (
          <li key={finding.code + finding.message}>
            <span
              class={
                finding.code === 'instructions' || finding.code === 'hidden' ? 'chip error' : 'chip block'
              }
            >
              {findingNames[finding.code]}
            </span>{' '}
            It {finding.message}.{' '}
            <span class="muted">
              In <Text value={pathLabel(finding.where)} max={100} mono />.
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

interface UseProps {
  row: ToolRow | null
  siteId: string
  name: string
  period: PeriodView | null
  lastCall: string | null
}

function Use({ row, siteId, name, period, lastCall }: UseProps) {
  if (period === null) return null
  const { since, until } = period
  const href = (outcome?: string): string =>
    logsHref({
      type: 'tool.executed',
      tool: name,
      siteIds: [siteId],
      since,
      until,
      ...(outcome && { outcome }),
    })
  const calls = row?.calls ?? 0
  return (
    <section class="panel lead">
      <p>
        <a href={href()}>{counted(calls, 'call')}</a> {rangeWords(period)}
        {row !== null && row.errors > 0 && (
          <>
            , <a href={href('error')}>{count(row.errors)} failed</a>
          </>
        )}
        {row !== null && row.blocked > 0 && (
          <>
            , <a href={href('blocked')}>{count(row.blocked)} blocked</a>
          </>
        )}
        .{' '}
        {lastCall === null ? (
          'No stored calls.'
        ) : (
          <>
            Last called{' '}
            <time dateTime={lastCall} title={utcTime(Date.parse(lastCall))}>
              {fullTime(Date.parse(lastCall))}
            </time>
            .
          </>
        )}
      </p>
      {row !== null && row.took !== null && <Took took={row.took} />}
    </section>
  )
}

function Took({ took }: { took: Quantiles }) {
  const parts: [string, number][] = [
    ['p50', took.p50Ms],
    ['p95', took.p95Ms],
    ['p99', took.p99Ms],
  ]
  return (
    <p class="tool-took">
      Duration:{' '}
      {parts.map(([name, ms], index) => (
        <>
          {index > 0 && ', '}
          {name} <b>{exactDuration(ms)}</b>
        </>
      ))}
      . <span class="muted">From {counted(took.count, 'call')} with a duration, accurate to 2 %.</span>
    </p>
  )
}

function Descriptor({ opened }: { opened: Opened }) {
  const { tool, versions, json } = opened
  const { description, annotations, inputSchema, outputSchema, group, page, title } = tool.tool
  const texts: [string, unknown][] = [
    ['Title', title],
    ['Page', page],
    ['Group', group],
  ]
  return (
    <>
      <section class="panel lead">
        <h3>Description</h3>
        {typeof description === 'string' && description.trim() !== '' ? (
          <p class="description">
            <Text value={description} multiline />
          </p>
        ) : (
          <p class="muted">No description.</p>
        )}
        <dl class="tool-facts">
          <dt>Tokens</dt>
          <dd>
            {count(tool.tokens)}{' '}
            {tool.tokensEstimated && <span class="muted">estimated from the descriptor</span>}
          </dd>
          {texts.map(
            ([word, value]) =>
              typeof value === 'string' &&
              value !== '' && (
                <>
                  <dt>{word}</dt>
                  <dd>
                    <Text value={value} max={160} />
                  </dd>
                </>
              ),
          )}
          {typeof annotations === 'object' &&
            annotations !== null &&
            Object.entries(annotations)
              .slice(0, 20)
              .map(([hint, value]) => (
                <>
                  <dt>
                    <Text value={hint} max={32} />
                  </dt>
                  <dd>
                    <Text value={typeof value === 'string' ? value : JSON.stringify(value)} max={160} />
                  </dd>
                </>
              ))}
        </dl>
      </section>
      <SchemaView title="Input" schema={inputSchema} none="No input schema." />
      <SchemaView title="Output" schema={outputSchema} none="No output schema." />
      <Versions versions={versions} />
      <section class="panel lead">
        <JsonView json={json} title="As pushed" label="The tool as JSON" />
      </section>
    </>
  )
}

/** The versions of a tool, newest first, each with what changed against the one before. */
const words = {
  added: 'registered',
  changed: 'changed',
  removed: 'removed from the registry',
  restored: 'registered again',
} as const

function Versions({ versions }: { versions: ToolVersion[] }) {
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
