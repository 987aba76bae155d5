/** Settings, Sources: access logs that are read, with position and problems, and the commands to read one. */
import { Fragment } from 'preact'
import { useMemo } from 'preact/hooks'
import { operateApi, type SourcesView } from '../../../api/operate-api.ts'
import { session } from '../../../app/session.ts'
import { CodeBlock } from '../../../components/copy.tsx'
import { Problem } from '../../../components/problem.tsx'
import { RecordTable } from '../../../components/record-table.tsx'
import { Text } from '../../../components/text.tsx'
import { Moment } from '../../../components/time.tsx'
import { refreshWhile } from '../../../query/query.ts'
import { useRecords } from '../../../query/use-query.ts'
import { doorName } from '../../../components/provenance.tsx'
import { bytesText, count, counted } from '../../../text/format.ts'
import { RoleNote } from '../../../components/role-note.tsx'
import { LostLines } from './lost-lines.tsx'

type Log = SourcesView['logs'][number]
type Syslog = SourcesView['syslog'][number]

const refreshMs = 5_000

export function Sources() {
  const allowed = session.value?.role !== 'viewer'
  return (
    <section class="settings-section">
      <p class="about">
        Access logs of web servers show agents without a change to the site. The{' '}
        <a href="/docs/access-logs" data-native>
          guide
        </a>{' '}
        explains each command.
      </p>
      {allowed ? <List /> : <RoleNote text="Only owners, admins and analysts can see sources." />}
    </section>
  )
}

function List() {
  const policy = useMemo(() => refreshWhile<SourcesView>(() => true, refreshMs), [])
  const { data, error, refetch } = useRecords<SourcesView>(
    { key: 'sources', fetch: operateApi.sources },
    policy,
  )
  if (error.value) return <Problem error={error.value} onRetry={refetch} />
  if (!data.value) return null
  const { logs, syslog, doors } = data.value
  const isEmpty = logs.length + syslog.length === 0
  return (
    <>
      {isEmpty && <p>No access logs yet. Run one of these commands on the machine of the web server.</p>}
      <LostLines view={data.value} />
      {logs.length > 0 && <Logs logs={logs} />}
      {syslog.length > 0 && <SyslogTable addresses={syslog} />}
      {doors.rows.length > 0 && <Doors doors={doors} />}
      <Commands />
    </>
  )
}

function Logs({ logs }: { logs: Log[] }) {
  return (
    <RecordTable
      label="Access logs"
      rows={logs}
      keyOf={({ siteId, path }) => JSON.stringify([siteId, path])}
      columns={[
        { name: 'Log', cell: ({ path }) => <Text value={path} max={60} mono /> },
        { name: 'Site', cell: ({ siteId }) => <Text value={siteId} max={36} /> },
        { name: 'State', cell: (log) => <State log={log} /> },
        { name: 'Format', cell: ({ format }) => (format === '' ? '–' : <Text value={format} max={24} />) },
        { name: 'Lines', number: true, cell: ({ lines }) => count(lines) },
        { name: 'Agents', number: true, cell: ({ agents }) => count(agents) },
        { name: 'Bad lines', number: true, cell: ({ bad }) => count(bad) },
        {
          name: 'Behind',
          number: true,
          cell: ({ reader }) => (reader === null ? '–' : bytesText(reader.behindBytes)),
        },
        { name: 'Last line', cell: ({ newestAt }) => (newestAt === null ? '–' : <Moment iso={newestAt} />) },
      ]}
    />
  )
}

function State({ log: { reader, isDrain } }: { log: Log }) {
  if (reader !== null && !reader.isRunning) return <span class="chip block">reader stopped</span>
  if (reader?.problem) return <Text value={reader.problem} max={200} />
  if (reader !== null) return <span class="chip allow">watched</span>
  return <span class="chip plain">{isDrain ? 'received' : 'imported'}</span>
}

/** What is lost on the way to the server cannot be counted. */
function SyslogTable({ addresses }: { addresses: Syslog[] }) {
  return (
    <RecordTable
      label="Syslog"
      rows={addresses}
      keyOf={({ listen }) => listen}
      columns={[
        { name: 'Address', cell: ({ listen }) => <Text value={listen} max={60} mono /> },
        { name: 'Site', cell: ({ siteId }) => <Text value={siteId} max={36} /> },
        { name: 'Format', cell: ({ format }) => format ?? '–' },
        { name: 'Received', number: true, cell: ({ received }) => count(received) },
        { name: 'Bad lines', number: true, cell: ({ bad }) => count(bad) },
        { name: 'Dropped', number: true, cell: ({ dropped }) => count(dropped) },
        { name: 'Last line', cell: ({ lastAt }) => (lastAt === null ? '–' : <Moment iso={lastAt} />) },
        {
          name: 'Problem',
          cell: ({ problem }) => (problem === null ? '–' : <Text value={problem} max={200} />),
        },
      ]}
    />
  )
}

/** Who sends events, and whose word their addresses are. */
function Doors({ doors: { rows, looked, complete } }: { doors: SourcesView['doors'] }) {
  const labels = new Map(rows.flatMap(({ key, label }) => (key === null ? [] : [[key, label] as const])))
  return (
    <>
      <h3>Doors</h3>
      <p class="muted">
        {complete ? 'Events of the last 7 days' : `The newest ${counted(looked, 'event')}`} by the way they
        came in. A verdict is only as good as its observer: the appliance, when it read the address itself,
        otherwise the key that reported it.
      </p>
      <RecordTable
        label="Doors"
        rows={rows}
        keyOf={({ door, key }) => JSON.stringify([door, key])}
        columns={[
          { name: 'Door', cell: ({ door }) => <Text value={doorName(door)} max={40} /> },
          {
            name: 'Key',
            cell: ({ key, label }) => (key === null ? '–' : <KeyCell id={key} label={label} />),
          },
          {
            name: 'Observed by',
            cell: ({ key, observers }) =>
              observers.length === 0
                ? 'nothing judged'
                : observers.map((observer, index) => (
                    <span key={observer}>
                      {index > 0 && ', '}
                      <Observer
                        observer={observer}
                        isOwnKey={observer === key}
                        label={labels.get(observer)}
                      />
                    </span>
                  )),
          },
          { name: 'Events', number: true, cell: ({ events }) => count(events) },
          { name: 'Last event', cell: ({ lastAt }) => <Moment iso={lastAt} /> },
        ]}
      />
    </>
  )
}

function KeyCell({ id, label }: { id: string; label: string | null | undefined }) {
  if (label == null) return <Text value={id} max={idChars} mono />
  return (
    <>
      <Text value={label} max={28} />{' '}
      <small class="muted">
        <Text value={id} max={idChars} mono />
      </small>
    </>
  )
}

/** A key's id is whole on hover. */
const idChars = 16

function Observer(props: { observer: string; isOwnKey: boolean; label: string | null | undefined }) {
  if (props.observer === 'appliance') return <>this appliance</>
  return props.isOwnKey ? <>its key</> : <KeyCell id={props.observer} label={props.label} />
}

const commands = [
  { label: 'Import logs once', text: 'sightglass import access /var/log/nginx/access.log* --site shop' },
  { label: 'Follow a log', text: 'sightglass watch /var/log/nginx/access.log --site shop' },
  {
    label: 'Follow a log of another machine',
    text: `sightglass watch /var/log/nginx/access.log --site shop --to ${location.origin} --key-file key.txt`,
  },
]

/** Each on the machine of the web server. */
function Commands() {
  return (
    <>
      <h3>Commands</h3>
      {commands.map(({ label, text }) => (
        <Fragment key={label}>
          <p class="muted">{label}:</p>
          <CodeBlock label={label} copyLabel="Copy command" text={text} />
        </Fragment>
      ))}
    </>
  )
}
