/** The message while the clock is not trusted. */
import type { ClockHold } from './clock-guard.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

export function holdSentence({ jumpMs, leftMs }: ClockHold): string {
  const off = `${spanText(Math.abs(jumpMs))} ${jumpMs > 0 ? 'ahead of' : 'behind'} the elapsed time`
  return (
    `The clock is ${off}. Deletion by age is paused until the clock is correct, an operator confirms it, ` +
    `or it has been steady for 24 hours (${spanText(leftMs)} left).`
  )
}

function spanText(ms: number): string {
  const [count, unit] =
    ms >= 47.5 * hourMs
      ? [ms / (24 * hourMs), 'days']
      : ms >= 1.95 * hourMs
        ? [ms / hourMs, 'hours']
        : [ms / minuteMs, 'minutes']
  return `${Math.round(count)} ${unit}`
}
