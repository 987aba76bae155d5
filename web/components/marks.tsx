/** The marks of the dashboard, each next to its label: trust as a filled vial, class as a square, outcome as a chip. */
import './marks.css'
import { Text } from './text.tsx'

const fillOf: { [trust: string]: number } = { detected: 0.06, declared: 0.33, verified: 0.75, linked: 1 }

/** Filled from the bottom; an unknown trust is an empty vial. */
export function Vial(props: { trust: string }) {
  const fill = Object.hasOwn(fillOf, props.trust) ? (fillOf[props.trust] ?? 0) : 0
  const height = 11.6 * fill
  return (
    <svg
      class="vial"
      width="10"
      height="16"
      viewBox="0 0 10 16"
      role="img"
      aria-label={`trust ${props.trust}`}
    >
      <title>{`trust: ${props.trust}`}</title>
      <clipPath id={`vial-${fill}`}>
        <rect x="2" y={2.2 + 11.6 - height} width="6" height={height} />
      </clipPath>
      <rect
        class="liquid"
        x="2.2"
        y="2.2"
        width="5.6"
        height="11.6"
        rx="2.8"
        clip-path={`url(#vial-${fill})`}
      />
      <rect class="glass" x="1" y="1" width="8" height="14" rx="4" />
    </svg>
  )
}

const knownClasses = ['webmcp', 'dom', 'screenshot', 'crawler']

export function ClassMark(props: { class: string }) {
  const shownClass = knownClasses.includes(props.class) ? props.class : 'other'
  return <i class={`class-mark ${shownClass}`} title={`class: ${props.class}`} aria-hidden="true" />
}

const toneOf: { [outcome: string]: string } = {
  success: 'allow',
  allow: 'allow',
  allowed: 'allow',
  blocked: 'block',
  deny: 'block',
  error: 'error',
  review: 'review',
}

export function Chip(props: { value: string; max?: number }) {
  return (
    <span class={`chip ${Object.hasOwn(toneOf, props.value) ? toneOf[props.value] : 'plain'}`}>
      <Text value={props.value} max={props.max ?? 14} />
    </span>
  )
}

/** The logo. */
export function Brand(props: { sizePx?: number; empty?: boolean }) {
  const size = props.sizePx ?? 20
  return (
    <svg class="brand-mark" width={size} height={size * 1.1} viewBox="0 0 20 22" aria-hidden="true">
      <rect class="glass" x="4.5" y="1" width="11" height="20" rx="5.5" />
      {!props.empty && <path class="liquid" d="M6.2 12.5c2.6-1.6 5 1.4 7.6 0v3.2a3.8 3.8 0 0 1-7.6 0z" />}
    </svg>
  )
}
