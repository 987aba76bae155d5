/** A table of any length that renders only the visible rows. CSS `--row-height` sets the row height. */
import './virtual-rows.css'
import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { printing } from '../../app/theme.ts'
import { useDeferred } from '../../components/rendering.tsx'

export interface VirtualRowsProps {
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

export function VirtualRows(props: VirtualRowsProps) {
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
