/** Who says so: the door and key of an event, who judged its verdict, with what, and from whose observation. */
import './provenance.css'
import { CopyButton } from './copy.tsx'
import { Text } from './text.tsx'
import { verdictSentence } from './verdict.ts'
import { dayName, fullTime, utcTime } from '../text/format.ts'
import type { EventProvenance, TraceEvent } from '../api/event-shapes.ts'

/** What a record refers to. */
export interface RecordNames {
  keys: { readonly [id: string]: string } // labels by id; a deleted key has none
  judgedSince: string | null // when an upgrade began to record judges
}

interface RecordedProps extends RecordNames {
  event: TraceEvent
  record: EventProvenance
}

/** A key by its label and id; a label can be anything. */
export function KeyName({ id, label }: { id: string; label: string | null | undefined }) {
  if (label == null)
    return (
      <>
        key <Text value={id} max={40} mono />
      </>
    )
  return (
    <>
      key{' '}
      <b>
        <Text value={label} max={40} />
      </b>{' '}
      (<Text value={id} max={40} mono />)
    </>
  )
}

const doorNames: { readonly [door: string]: string } = {
  events: 'Events API',
  'access-log': 'Access log',
  syslog: 'Syslog',
  otlp: 'OpenTelemetry',
  import: 'Import of a file',
  demo: 'Sample data',
}

export function doorName(door: string | null): string {
  if (door === null) return 'Not recorded'
  return Object.hasOwn(doorNames, door) ? doorNames[door]! : door
}

/** "Events API, with key backend (key_…)". */
export function DoorSentence({ record: { door, key }, keys, judgedSince }: RecordedProps) {
  const keyed = key !== null && (
    <>
      , with <KeyName id={key} label={keys[key]} />
    </>
  )
  if (door === null)
    return (
      <>
        Not recorded{formatBefore(judgedSince)}
        {keyed}
      </>
    )
  const isLocal = key === null && (door === 'access-log' || door === 'syslog')
  return (
    <>
      <Text value={doorName(door)} max={40} />
      {isLocal && ', read on this machine'}
      {keyed}
    </>
  )
}

const formatBefore = (iso: string | null): string =>
  iso === null ? '' : ` before ${dayName(Date.parse(iso))}`

const words: { readonly [verdict: string]: string } = {
  verified: 'Verified',
  consistent: 'Consistent',
  contradicted: 'Contradicted',
  unverifiable: 'Unverifiable',
  unknown: 'Unknown',
}

const wordOf = (verdict: string): string => (Object.hasOwn(words, verdict) ? words[verdict]! : verdict)

/** The verdict, what it rests on, and how much it is worth. */
export function VerdictSentence(props: RecordedProps) {
  const { event, record, keys, judgedSince } = props
  const { verdict, judgedBy } = record
  if (verdict === null) return null
  if (judgedBy === 'sender')
    return (
      <>
        Reported as <Text value={verdict} max={40} /> by the sender
        {record.key !== null && (
          <>
            , <KeyName id={record.key} label={keys[record.key]} />
          </>
        )}
        . Sightglass did not check it.
      </>
    )
  if (judgedBy === 'unknown') {
    const sentence = verdictSentence({ ...event.agent, verdict }, event.metadata?.address)
    return (
      <>
        <b>
          <Text value={wordOf(verdict)} max={40} />
        </b>
        . Judge not recorded{judgedSince === null ? '' : ` (stored${formatBefore(judgedSince)})`}.
        {sentence !== null && (
          <>
            {' '}
            <Text value={sentence} multiline />
          </>
        )}
      </>
    )
  }
  return <OwnVerdict {...props} verdict={verdict} />
}

/** A verdict of the appliance. */
function OwnVerdict({ event, record, keys, verdict }: RecordedProps & { verdict: string }) {
  const { observedBy, evidence, network } = record
  // The list is named below, with its date and digest.
  const proof = { ...evidence, list: null, listDate: null }
  const sentence = verdictSentence({ vendor: event.agent?.vendor, verdict, evidence: proof }, network)
  const isReported = observedBy !== null && observedBy !== 'appliance'
  const subject = evidence?.['method'] === 'signature' ? 'a request' : 'an address'
  return (
    <>
      <b>
        <Text value={wordOf(verdict)} max={40} />
      </b>
      {isReported && (
        <>
          , from {subject} that <KeyName id={observedBy} label={keys[observedBy]} /> reported
        </>
      )}
      .
      {sentence !== null && (
        <>
          {' '}
          <Text value={sentence} multiline />
        </>
      )}
      <Judged evidence={evidence} receivedAt={record.receivedAt} />
    </>
  )
}

const textIn = (evidence: EventProvenance['evidence'], name: string): string | null => {
  const value = evidence?.[name]
  return typeof value === 'string' && value !== '' ? value : null
}

const digestShown = 12

/** When the appliance judged, and by which list with which content. */
function Judged({ evidence, receivedAt }: Pick<EventProvenance, 'evidence' | 'receivedAt'>) {
  const atMs = Date.parse(receivedAt)
  const list = textIn(evidence, 'list')
  const listDate = textIn(evidence, 'listDate')
  const digest = textIn(evidence, 'listDigest')
  return (
    <span class="judged muted">
      Judged{' '}
      <time dateTime={receivedAt} title={utcTime(atMs)}>
        {fullTime(atMs)}
      </time>
      {list !== null && (
        <>
          {' '}
          by the list <Text value={list} max={80} mono />
        </>
      )}
      {listDate !== null && (
        <>
          {' '}
          of <Text value={listDate} max={20} />
        </>
      )}
      {digest !== null && (
        <>
          , SHA-256{' '}
          <span class="mono" title={digest}>
            {digest.slice(0, digestShown)}…
          </span>{' '}
          <CopyButton text={digest} label="Copy digest" />
        </>
      )}
    </span>
  )
}
