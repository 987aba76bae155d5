/** Settings, System, for operators: the nodes that share the database, and the work that waits in it. */
import { useMemo } from 'preact/hooks'
import { operateApi, type NodesView } from '../../../api/operate-api.ts'
import { Problem } from '../../../components/problem.tsx'
import { RecordTable } from '../../../components/record-table.tsx'
import { Text } from '../../../components/text.tsx'
import { Moment } from '../../../components/time.tsx'
import { refreshWhile } from '../../../query/query.ts'
import { useRecords } from '../../../query/use-query.ts'
import { bytesText, count, counted, duration } from '../../../text/format.ts'

type Node = NodesView['nodes'][number]

/** Nodes report every 5 s. */
const refreshMs = 5_000

const tones = { running: 'allow', ending: 'plain', missing: 'error' } as const

/** Nothing when the database is in the data folder of one server. */
export function Nodes() {
  const policy = useMemo(() => refreshWhile<NodesView>(({ isShared }) => isShared, refreshMs), [])
  const { data, error, refetch } = useRecords<NodesView>({ key: 'nodes', fetch: operateApi.nodes }, policy)
  if (error.value) return <Problem error={error.value} onRetry={refetch} />
  if (!data.value?.isShared) return null
  const { nodes, versions, backlog } = data.value
  return (
    <>
      <h3>Nodes</h3>
      <Notices nodes={nodes} versions={versions} />
      <RecordTable
        label="Nodes"
        class="nodes-table"
        rows={nodes}
        keyOf={({ name }) => name}
        isEnded={({ state }) => state === 'missing'}
        columns={[
          { name: 'Node', cell: (node) => <Name node={node} /> },
          {
            name: 'State',
            cell: ({ state, problem }) => (
              <span class={`chip ${problem !== null && state === 'running' ? 'block' : tones[state]}`}>
                {state}
              </span>
            ),
          },
          { name: 'Version', cell: ({ version }) => <Text value={version} max={24} /> },
          { name: 'Role', cell: ({ role }) => role },
          { name: 'Started', cell: ({ startedAt }) => <Moment iso={startedAt} /> },
          { name: 'Last seen', cell: ({ seenAt }) => <Moment iso={seenAt} /> },
          { name: 'Clock', cell: (node) => <Clock node={node} /> },
          { name: 'Queue', cell: (node) => queueText(node) },
          { name: 'Sync delay', cell: ({ state, viewMs }) => (state === 'missing' ? '–' : duration(viewMs)) },
        ]}
      />
      {backlog !== null && <Backlog backlog={backlog} />}
    </>
  )
}

/** What needs an operator, above the table, whose columns a narrow window hides. */
function Notices({ nodes, versions }: Pick<NodesView, 'nodes' | 'versions'>) {
  const problems = nodes.flatMap(({ name, state, seenAt, aheadMs, isClockOff, problem }) => [
    ...(state === 'missing'
      ? [
          {
            name,
            text: (
              <>
                missing, last seen <Moment iso={seenAt} />.
              </>
            ),
          },
        ]
      : []),
    ...(problem !== null ? [{ name, text: <Text value={problem} max={400} /> }] : []),
    ...(isClockOff && aheadMs !== null && state !== 'missing'
      ? [{ name, text: <>its clock is {offText(aheadMs)} the database’s. Synchronize both with NTP.</> }]
      : []),
  ])
  if (problems.length === 0 && versions.length < 2) return null
  return (
    <div role="status">
      <ul class="node-notices">
        {versions.length > 1 && (
          <li>
            <span class="chip block">{counted(versions.length, 'version')}</span> Nodes run different
            versions: <Text value={versions.join(', ')} max={200} />. Upgrade all of them to the newest.
          </li>
        )}
        {problems.map(({ name, text }, index) => (
          <li key={index}>
            <strong>
              <Text value={name} max={48} />
            </strong>
            : {text}
          </li>
        ))}
      </ul>
    </div>
  )
}

function offText(aheadMs: number): string {
  return `${duration(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead of'}`
}

function Name({ node: { name, isThis } }: { node: Node }) {
  return (
    <>
      <Text value={name} max={32} />
      {isThis && <small class="sub-line muted">answers this page</small>}
    </>
  )
}

/** The difference to the clock of the database. */
function Clock({ node: { aheadMs, isClockOff } }: { node: Node }) {
  if (aheadMs === null) return <>–</>
  const text = `${duration(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead'}`
  return isClockOff ? <span class="chip error">{text}</span> : <>{text}</>
}

function queueText({ state, queuedBytes, queuedMs }: Node): string {
  if (state === 'missing') return '–'
  return queuedBytes === 0 ? 'empty' : `${bytesText(queuedBytes)}, ${duration(queuedMs)}`
}

function Backlog({ backlog }: { backlog: NonNullable<NodesView['backlog']> }) {
  const { unfolded, undispatched, deliveriesDue, oldestDueMs } = backlog
  const since = oldestDueMs === null ? '' : `, the oldest for ${duration(oldestDueMs)}`
  return (
    <dl class="settings-facts">
      <dt>Events to add to hourly counts</dt>
      <dd>{count(unfolded)}</dd>
      <dt>Events to batch for webhooks</dt>
      <dd>{count(undispatched)}</dd>
      <dt>Deliveries due</dt>
      <dd>
        {count(deliveriesDue)}
        {since}
      </dd>
    </dl>
  )
}
