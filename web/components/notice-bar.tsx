/** A line above every page while an alert is open or an endpoint needs somebody; the Webhooks page tells the rest. */
import { useEffect } from 'preact/hooks'
import { now } from '../app/clock.ts'
import { counted } from '../text/format.ts'
import { notices, pressing, refreshMs, refreshNotices } from '../app/notices.ts'
import { path } from '../app/router.ts'
import type { Notice } from '../api/webhook-api.ts'
import { Text } from './text.tsx'

const unusedMsMax = 3_600_000
const acts = ['pointermove', 'keydown', 'wheel'] as const

export function NoticeBar() {
  const here = path.value
  useEffect(() => void refreshNotices(), [here])
  useEffect(() => {
    let usedMs = now()
    const use = (): void => void (usedMs = now())
    const timer = setInterval(() => {
      // Asking keeps the sign-in alive: a page that nobody uses must not do so by itself.
      const isUsed = document.visibilityState === 'visible' && now() - usedMs < unusedMsMax
      if (isUsed) void refreshNotices()
    }, refreshMs)
    for (const act of acts) window.addEventListener(act, use, { passive: true })
    return () => {
      clearInterval(timer)
      for (const act of acts) window.removeEventListener(act, use)
    }
  }, [])
  const placeOf = ({ href = '/webhooks' }: Notice): string => href
  const [first, ...more] = pressing(notices.value).filter((notice) => placeOf(notice) !== here)
  if (first === undefined) return null
  return (
    <p class="notice-bar" role="status">
      <Text value={first.message} max={240} />{' '}
      <a href={placeOf(first)}>
        {more.length === 0 ? 'Look at it' : `Look at it and ${counted(more.length, 'other')}`}
      </a>
    </p>
  )
}
