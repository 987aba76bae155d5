/** Settings, Evidence: the lists that prove who agents are, their age, and how to replace them. */
import { operateApi, type Evidence } from '../../../api/operate-api.ts'
import { CodeBlock } from '../../../components/copy.tsx'
import { Problem } from '../../../components/problem.tsx'
import { RecordTable } from '../../../components/record-table.tsx'
import { Text } from '../../../components/text.tsx'
import { Moment } from '../../../components/time.tsx'
import { useRecords } from '../../../query/use-query.ts'
import { count, counted } from '../../../text/format.ts'

type List = Evidence['lists'][number]

export function EvidenceSection() {
  const { data, error, refetch } = useRecords<Evidence>({ key: 'evidence', fetch: operateApi.evidence })
  if (error.value) return <Problem error={error.value} onRetry={refetch} />
  if (!data.value) return <p class="muted">Loading…</p>
  const view = data.value
  const lists = view.lists.filter(({ kind }) => kind !== 'robots.txt names')
  const old = lists.filter((list) => list.old && list.kind === 'networks').length
  return (
    <section class="settings-section">
      <p class="about">
        Anybody can send the user agent of a known crawler. Operators publish the networks, host names and
        keys of their agents, and the verdict of an event compares its sender with these lists.
      </p>
      {(view.problem !== null || old > 0) && (
        <div role="status">
          <ul class="node-notices">
            {view.problem !== null && (
              <li>
                <span class="chip error">damaged</span> <Text value={view.problem} max={400} /> The pack of
                this release is in force. Store the pack again.
              </li>
            )}
            {old > 0 && (
              <li>
                <span class="chip block">old</span> {counted(old, 'address list')} last seen more than{' '}
                {counted(view.maxAgeDays, 'day')} ago. They contradict no claim: update the pack.
              </li>
            )}
          </ul>
        </div>
      )}
      <PackFacts view={view} />
      <RecordTable
        label="Lists"
        class="evidence-table"
        rows={lists}
        keyOf={({ list }) => list}
        isEnded={(list) => list.old}
        columns={[
          { name: 'List', cell: (list) => <Name list={list} /> },
          { name: 'Operator', cell: ({ operator }) => <Text value={operator} max={24} /> },
          { name: 'Entries', cell: (list) => counted(list.count, list.kind.slice(0, -1)) },
          { name: 'Published', cell: ({ published }) => published ?? '–' },
          {
            name: 'Last seen',
            cell: ({ seen: seenDate, old: isOld }) =>
              isOld ? <span class="chip block">{seenDate}</span> : seenDate,
          },
          {
            name: 'Source',
            cell: ({ source }) => <Text value={source.replace(/^https?:\/\/(www\.)?/, '')} max={60} />,
          },
        ]}
      />
      <h3>Update</h3>
      <p>
        Copy a newer pack to this machine and run this command. All nodes use it at once. The verdicts of
        stored events do not change.
      </p>
      <CodeBlock label="Command" copyLabel="Copy command" text="sightglass evidence update evidence.json" />
    </section>
  )
}

function PackFacts({ view }: { view: Evidence }) {
  return (
    <dl class="settings-facts">
      <dt>Pack</dt>
      <dd>
        {view.made.slice(0, 10)}, {view.origin === 'bundled' ? 'part of this release' : 'replaced'},{' '}
        {view.signed ? 'signed with the release key' : 'not signed'}
      </dd>
      {view.storedAt !== null && view.storedBy !== null && (
        <>
          <dt>Stored</dt>
          <dd>
            <Moment iso={view.storedAt} /> by <Text value={view.storedBy} max={60} />
          </dd>
        </>
      )}
      <dt>Networks</dt>
      <dd>{count(view.networks)}</dd>
      <dt>Oldest list</dt>
      <dd>last seen {counted(view.ageDays, 'day')} ago</dd>
      <dt>Digest</dt>
      <dd>
        <Text value={view.digest} max={24} mono />
      </dd>
    </dl>
  )
}

function Name({ list: { list, products } }: { list: List }) {
  return (
    <>
      <Text value={list} max={27} />
      {products.length > 0 && (
        <small class="sub-line muted">
          <Text value={products.join(', ')} max={40} />
        </small>
      )}
    </>
  )
}
