/** One site's memory: score, pages as a tree, policies, versions and the snapshot as pushed. */
import { useQuery } from '../../query/use-query.ts'
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { download } from '../../charts/data-table.tsx'
import { JsonView, fieldText } from '../../components/json.tsx'
import { Later } from '../../components/rendering.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { bytesText, counted } from '../../text/format.ts'
import { registryApi, type MemoryHistory } from '../../api/registry-api.ts'
import { Moment } from '../../components/time.tsx'
import { History, Score } from './history.tsx'
import { otherMembers, policiesOf, siteMapOf, type MapNode, type SiteMap } from './snapshot.ts'
import type { Query } from '../../query/query.ts'

interface Opened extends MemoryHistory {
  text: string // the whole response, digits unchanged
}

/** Fetches the whole response as text, because JSON.parse would round numbers. */
export const memoryQuery = (siteId: string, version: number): Query<string> => ({
  key: `memory/${JSON.stringify([siteId, version])}`,
  fetch: (signal) => registryApi.memoryText(siteId, signal),
})

/** `version` is the newest known one; when it changes, the site is fetched again. */
export function SiteView({ siteId, version }: { siteId: string; version: number }) {
  const { data, error, refetch } = useQuery(memoryQuery(siteId, version), undefined, { keepPrevious: true })
  const opened = useMemo(() => openedOf(data), [data])
  if (error) return <Problem error={error} onRetry={refetch} />
  return opened && <Opened {...opened} />
}

function openedOf(text: string | null): Opened | null {
  return text === null ? null : { ...(JSON.parse(text) as MemoryHistory), text }
}

function Opened({ memory, versions, text }: Opened) {
  const map = siteMapOf(memory.snapshot)
  return (
    <article class="site-view" aria-label="Site memory">
      <header>
        <h2>
          <Text value={memory.siteId} max={80} />
        </h2>
        <p class="muted">
          Version {memory.version}, pushed <Moment iso={memory.at} />; first seen{' '}
          <Moment iso={memory.firstSeenAt} />.
        </p>
      </header>
      <Score memory={memory} before={versions[1] ?? null} />
      <Later>
        <div class="site-columns">
          <SiteTree map={map} />
          <Policies memory={memory} />
        </div>
        <History siteId={memory.siteId} versions={versions} />
        <Snapshot memory={memory} text={text} />
      </Later>
    </article>
  )
}

const policiesMax = 50
const textCharsMax = 4_000

function Policies({ memory }: Pick<Opened, 'memory'>) {
  const policies = policiesOf(memory.snapshot)
  return (
    <section class="panel lead policies">
      <header class="lead-head">
        <h3>Policies</h3>
        <small class="muted">{counted(policies.length, 'policy', 'policies')}</small>
      </header>
      {policies.length === 0 && <p class="muted">The snapshot has no policies.</p>}
      <div class="policy-texts" tabIndex={0} role="region" aria-label="Policies">
        <dl>
          {policies.slice(0, policiesMax).map((policy) => (
            <div key={policy.name}>
              <dt>
                <Text value={policy.name} max={80} />
              </dt>
              {policy.texts.map((text, index) => (
                <dd key={index}>
                  <Text value={text.slice(0, textCharsMax)} multiline />
                  {text.length > textCharsMax && (
                    <span class="muted"> … full text in the snapshot below</span>
                  )}
                </dd>
              ))}
            </div>
          ))}
        </dl>
      </div>
      {policies.length > policiesMax && (
        <p class="muted">
          {counted(policies.length - policiesMax, 'more policy', 'more policies')} in the snapshot.
        </p>
      )}
    </section>
  )
}

/** Formatting a long text takes the browser seconds, so the text is offered as a file. */
const laidOutBytesMax = 200_000

function Snapshot({ memory, text }: Pick<Opened, 'memory' | 'text'>) {
  const open = useSignal(false)
  const otherFields = otherMembers(memory.snapshot)
  const json = (): string => fieldText(fieldText(text, 'memory') ?? '{}', 'snapshot') ?? '{}'
  const long = memory.bytes > laidOutBytesMax
  return (
    <section class="panel lead">
      <details onToggle={(event) => (open.value = event.currentTarget.open)}>
        <summary>
          <b>Snapshot as pushed</b>{' '}
          <span class="muted">
            {bytesText(memory.bytes)}
            {otherFields.length > 0 && (
              <>
                , other fields: <Text value={otherFields.join(', ')} max={80} />
              </>
            )}
          </span>
        </summary>
        {open.value && !long && <JsonView json={json()} title="JSON" label="The snapshot as JSON" />}
        {open.value && long && (
          <button
            type="button"
            class="button"
            onClick={() => download(`memory-${memory.version}.json`, json())}
          >
            Save as JSON
          </button>
        )}
      </details>
    </section>
  )
}

const actionsMax = 8

/** The site map as a tree of paths, with each page's purpose and actions. */
function SiteTree({ map }: { map: SiteMap }) {
  return (
    <section class="panel lead">
      <header class="lead-head">
        <h3>Site map</h3>
        <small class="muted">{counted(map.pages, 'page')}</small>
      </header>
      {map.pages === 0 ? (
        <p class="muted">The snapshot has no pages.</p>
      ) : (
        <div class="site-tree" tabIndex={0} role="region" aria-label="Site map">
          <ul aria-label="Pages of the site">
            {map.roots.map((node) => (
              <Branch key={node.key} node={node} />
            ))}
          </ul>
        </div>
      )}
      {map.odd > 0 && (
        <p class="muted">
          {counted(map.odd, 'entry', 'entries')} without a path {map.odd === 1 ? 'is' : 'are'} not shown.
        </p>
      )}
      {map.cut && <p class="muted">The first 1,000 pages are shown. The snapshot has all of them.</p>}
    </section>
  )
}

function Branch({ node }: { node: MapNode }) {
  const { page, children } = node
  return (
    <li>
      <div class="tree-page">
        <span class={page === null ? 'tree-path no-page' : 'tree-path'}>
          <Text value={node.part} max={60} mono />
        </span>
        {page !== null && page.name !== '' && (
          <b>
            <Text value={page.name} max={60} />
          </b>
        )}
        {page !== null && page.purpose !== '' && (
          <span class="muted">
            <Text value={page.purpose} max={160} />
          </span>
        )}
        {page !== null && page.actions.length > 0 && (
          <span class="tree-actions">
            {page.actions.slice(0, actionsMax).map((action, index) => (
              <span class="chip plain" key={index}>
                <Text value={action} max={28} />
              </span>
            ))}
            {page.actions.length > actionsMax && (
              <span class="muted">and {page.actions.length - actionsMax} more</span>
            )}
          </span>
        )}
      </div>
      {children.length > 0 && (
        <ul>
          {children.map((child) => (
            <Branch key={child.key} node={child} />
          ))}
        </ul>
      )}
    </li>
  )
}
