/** The bar above every page while an alert is open or an endpoint needs attention. */
import { useEffect } from 'preact/hooks'
import { now } from '../app/clock.ts'
import { counted } from '../text/format.ts'
import { notices, urgent, refreshMs, refreshNotices } from '../app/notices.ts'
import { path } from '../app/router.ts'
import type { Notice } from '../api/webhook-api.ts'
import { Text } from './text.tsx'

const idleMsMax = 3_600_000
const activity = ['pointermove', 'keydown', 'wheel'] as const

export function NoticeBar() {
  const here = path.value
  useEffect(() => void refreshNotices(), [here])
  useEffect(() => {
    let usedMs = now()
    const use = (): void => void (usedMs = now())
    const timer = setInterval(() => {
      // A request keeps the sign-in alive, so an idle page must not send any.
      const isUsed = document.visibilityState === 'visible' && now() - usedMs < idleMsMax
      if (isUsed) void refreshNotices()
    }, refreshMs)
    for (const act of activity) window.addEventListener(act, use, { passive: true })
    return () => {
      clearInterval(timer)
      for (const act of activity) window.removeEventListener(act, use)
    }
  }, [])
  const placeOf = ({ href = '/webhooks' }: Notice): string => href
  const [first, ...more] = urgent(notices.value).filter((notice) => placeOf(notice) !== here)
  if (first === undefined) return null
  return (
    <p class="notice-bar" role="status">
      <Text value={first.message} max={240} />{' '}
      <a href={placeOf(first)}>
        {more.length === 0 ? 'View' : `View this and ${counted(more.length, 'other')}`}
      </a>
    </p>
  )
}
