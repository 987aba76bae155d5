/** A line above every page while an alert is open or an endpoint needs somebody; the Webhooks page tells the rest. */
import { useEffect } from 'preact/hooks'
import { counted } from '../format.ts'
import { notices, pressing, refreshMs, refreshNotices } from '../notices.ts'
import { path } from '../router.ts'
import { Text } from './text.tsx'

export function NoticeBar() {
  const here = path.value
  useEffect(() => void refreshNotices(), [here])
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void refreshNotices()
    }, refreshMs)
    return () => clearInterval(timer)
  }, [])
  const [first, ...more] = pressing(notices.value)
  if (first === undefined || here === '/webhooks') return null
  return (
    <p class="notice-bar" role="status">
      <Text value={first.message} max={240} />{' '}
      <a href="/webhooks">
        {more.length === 0 ? 'Look at it' : `Look at it and ${counted(more.length, 'other')}`}
      </a>
    </p>
  )
}
