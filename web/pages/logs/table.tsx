/** The table of events: one line per event on a desktop, two on a phone. It renders only the visible rows. */
import './table.css'
import { now } from '../../app/clock.ts'
import { Chip, ClassMark, Vial } from '../../components/marks.tsx'
import { Text } from '../../components/text.tsx'
import { aheadMs } from '../../api/field-filters.ts'
import { counted, duration, eventTime, fullTime, utcTime } from '../../text/format.ts'
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { printing } from '../../app/theme.ts'
import { useDeferred } from '../../components/rendering.tsx'
import type { Entry } from './entries.ts'
import type { LogsModel } from './model.ts'
import type { ComponentChildren, VNode } from 'preact'

const tableSelector = '.event-table .virtual-rows'

/** Keyboard navigation belongs to the table, unless the focus is inside the opened event. */
export function focusTable(): void {
  if (document.activeElement?.closest('.drawer')) return
  document.querySelector<HTMLElement>(tableSelector)?.focus({ preventScroll: true })
}

export function scrollTableToTop(): void {
  document.querySelector(tableSelector)?.scrollTo({ top: 0 })
}

interface EventTableProps {
  model: LogsModel
  activeId: string | null
  openedId: string | null
  onOpen: (id: string) => void
}

const columns = ['Time', 'Type', 'Agent', 'Verdict', 'Details', 'Site', 'Outcome']

export function EventTable({ model, activeId, openedId, onOpen }: EventTableProps) {
  const entries = model.entries.value
  const nowMs = now()
  const waiting = model.paused.value ? 0 : model.waiting.value
  const renderRow = (index: number) => {
    const entry = entries[index] as Entry
    const selected = entry.id === openedId || entry.id === activeId
    return (
      <EventRow
        key={entry.id}
        entry={entry}
        index={index}
        nowMs={nowMs}
        selected={selected}
        onOpen={onOpen}
      />
    )
  }
  return (
    <section class="panel event-table" aria-label="Events">
      {waiting > 0 && (
        <button type="button" class="button primary new-events" onClick={scrollTableToTop}>
          ↑ {counted(waiting, 'new event')}
        </button>
      )}
      <VirtualRows
        label="Events, newest first"
        count={entries.length}
        columns={columns}
        renderRow={renderRow}
        activeIndex={activeId === null ? -1 : entries.findIndex((entry) => entry.id === activeId)}
        activeId={activeId}
        onNearEnd={() => void model.loadOlder()}
        onScrolledAway={model.hold}
        foot={
          <p class="table-foot muted">
            {model.loadingOlder.value
              ? 'Loading older events…'
              : model.hasOlder.value
                ? ''
                : `${counted(entries.length, 'event')}. End of list.`}
          </p>
        }
      />
    </section>
  )
}

interface EventRowProps {
  entry: Entry
  index: number
  nowMs: number
  selected: boolean
  onOpen: (id: string) => void
}

const freshMs = 1_500

function EventRow({ entry, index, nowMs, selected, onOpen }: EventRowProps) {
  const { event } = entry
  const fresh = entry.alone && nowMs - entry.receivedAtMs < freshMs
  return (
    <div
      role="row"
      id={`row-${index}`}
      aria-rowindex={index + 2}
      aria-selected={selected}
      class={fresh ? 'virtual-row event-row fresh' : 'virtual-row event-row'}
      onClick={() => onOpen(entry.id)}
    >
      <span role="gridcell" class="mono time" title={timeTitle(entry)}>
        {eventTime(entry.atMs, nowMs)}
        <ClockAhead entry={entry} />
      </span>
      <span role="gridcell" class="type">
        <Text value={event.type} max={40} />
      </span>
      <span role="gridcell" class="agent">
        {isImpostor(entry) && (
          <span class="impostor" title="not from the agent that it names">
            ✕
          </span>
        )}
        <AgentName agent={event.agent} />
      </span>
      <span role="gridcell" class="verdict">
        <Verdict record={entry.record} />
      </span>
      <span role="gridcell" class="details">
        <Details event={event} />
      </span>
      <span role="gridcell" class="mono site">
        <Text value={event.siteId} max={30} />
      </span>
      <span role="gridcell" class="outcome">
        <Chip value={event.outcome} max={11} />
      </span>
    </div>
  )
}

/** The explanation of the mark for a wrong client clock. */
function aheadTitle({ occurredAtMs, receivedAtMs }: Entry): string {
  return `The sender's clock said ${utcTime(occurredAtMs)}. Listed by its arrival time, ${utcTime(receivedAtMs)}.`
}

function timeTitle(entry: Entry): string {
  return `${fullTime(entry.occurredAtMs)}\n${utcTime(entry.occurredAtMs)}\nreceived ${utcTime(entry.receivedAtMs)}`
}

/** A late arrival is no fault: only the drawer has it, because beside a time it reads as a time zone. */
function ClockAhead({ entry }: { entry: Entry }) {
  const clockAheadMs = aheadMs(entry.occurredAtMs, entry.receivedAtMs)
  if (clockAheadMs <= 0) return null
  return (
    <small class="ahead" title={aheadTitle(entry)}>
      {' '}
      {duration(clockAheadMs)} ahead
    </small>
  )
}

function AgentName({ agent }: { agent: Entry['event']['agent'] }) {
  if (!agent) return null
  const bot = typeof agent.name === 'string' && agent.name !== '' ? agent.name : null
  const name = bot ?? agent.vendor ?? agent.class ?? null
  return (
    <>
      {agent.trust != null && <Vial trust={agent.trust} />}
      {agent.class != null && <ClassMark class={agent.class} />}
      {name !== null && <Text value={name} max={30} />}
      {bot !== null && agent.vendor != null && agent.vendor !== bot && (
        <small class="muted">
          <Text value={agent.vendor} max={30} />
        </small>
      )}
      {agent.class != null && <span class="visually-hidden">, {agent.class}</span>}
    </>
  )
}

/** The verdict, and whose word it is. A sender's claim never looks like a check of the appliance. */
function Verdict({ record }: { record: Entry['record'] }) {
  if (record === undefined || record.verdict === null) return null
  if (record.judgedBy === 'sender')
    return (
      <small>
        <Text value={record.verdict} max={20} />, by sender
      </small>
    )
  return (
    <span class={record.verdict === 'contradicted' ? 'impostor' : undefined}>
      <Text value={record.verdict} max={20} />
    </span>
  )
}

function isImpostor({ record }: Entry): boolean {
  return record?.verdict === 'contradicted' && record.judgedBy !== 'sender'
}

/** What the type of the event is about: a tool and its duration, a rule, or a request and its answer. */
function Details({ event }: { event: Entry['event'] }) {
  const { page, method, status } = event.metadata ?? {}
  const rule = event.type.startsWith('authz.') ? event.policy?.ruleId : null
  return (
    <>
      {event.tool != null && <Text value={event.tool} max={36} />}
      {event.tool != null && event.durationMs != null && <small>{duration(event.durationMs)}</small>}
      {rule != null && (
        <small>
          <Text value={rule} max={36} />
        </small>
      )}
      {typeof method === 'string' && (
        <small class="mono">
          <Text value={method} max={12} />
        </small>
      )}
      {typeof page === 'string' && <Text value={page} max={60} mono />}
      {typeof status === 'number' && <small class="mono">{status}</small>}
    </>
  )
}

interface VirtualRowsProps {
  label: string
  count: number
  columns: string[]
  renderRow: (index: number) => VNode
  /** The row with the keyboard focus; it scrolls into view when it changes. -1: none. */
  activeIndex: number
  activeId: string | null
  onNearEnd: () => void
  onScrolledAway: (away: boolean) => void
  foot?: ComponentChildren
}

/** Rows rendered above and below the view after the first paint, so that scrolling does not show gaps. */
const overscanRows = 8
const nearEndRows = 30

/** A table of any length that renders only the visible rows. CSS `--row-height` sets the row height. */
function VirtualRows(props: VirtualRowsProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const scrollTop = useSignal(0)
  const viewPx = useSignal(800)
  const rowPx = useSignal(34)
  useLayoutEffect(() => measure(scroller.current, viewPx, rowPx), [])
  const isPrinting = printing.value
  const overscan = useDeferred() ? overscanRows : 0
  const first = isPrinting ? 0 : Math.max(0, Math.floor(scrollTop.value / rowPx.value) - overscan)
  const inView = Math.ceil((scrollTop.value + viewPx.value) / rowPx.value) + overscan
  const last = isPrinting ? props.count : Math.min(props.count, inView)
  useEffect(() => {
    if (!isPrinting && last >= props.count - nearEndRows) props.onNearEnd()
  }, [last, props.count])
  useLayoutEffect(() => keepInView(scroller.current, props.activeIndex, rowPx.value), [props.activeId])
  const onScroll = (event: Event & { currentTarget: HTMLDivElement }): void => {
    scrollTop.value = event.currentTarget.scrollTop
    props.onScrolledAway(event.currentTarget.scrollTop > rowPx.value / 2)
  }
  const rows: VNode[] = []
  for (let index = Math.min(first, last); index < last; index++) rows.push(props.renderRow(index))
  const activeShown = props.activeIndex >= first && props.activeIndex < last
  return (
    <div
      ref={scroller}
      class="virtual-rows"
      role="grid"
      tabIndex={0}
      aria-label={props.label}
      aria-rowcount={props.count + 1}
      aria-activedescendant={activeShown && props.activeIndex >= 0 ? `row-${props.activeIndex}` : undefined}
      onScroll={onScroll}
    >
      <div role="rowgroup" class="virtual-head">
        <div role="row" aria-rowindex={1} class="virtual-row">
          {props.columns.map((column) => (
            <span role="columnheader">{column}</span>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="virtual-body" style={{ height: `${props.count * rowPx.value}px` }}>
        <div role="presentation" style={{ transform: `translateY(${first * rowPx.value}px)` }}>
          {rows}
        </div>
      </div>
      {props.foot}
    </div>
  )
}

interface Measured {
  value: number
}

/** Tracks the height of the view and of a row, which differ between desktop and phone. */
function measure(element: HTMLElement | null, viewPx: Measured, rowPx: Measured): (() => void) | undefined {
  if (!element) return
  const read = (): void => {
    viewPx.value = element.clientHeight
    rowPx.value = Number.parseFloat(getComputedStyle(element).getPropertyValue('--row-height')) || 34
  }
  read()
  const observer = new ResizeObserver(read)
  observer.observe(element)
  return () => observer.disconnect()
}

function keepInView(element: HTMLElement | null, index: number, rowPx: number): void {
  if (!element || index < 0) return
  const headPx = element.firstElementChild?.clientHeight ?? 0
  const top = index * rowPx
  const spacePx = element.clientHeight - headPx
  if (top < element.scrollTop) element.scrollTop = top
  else if (top + rowPx > element.scrollTop + spacePx) element.scrollTop = top + rowPx - spacePx
}
