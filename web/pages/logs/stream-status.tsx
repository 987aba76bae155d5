/** Whether the stream runs, is paused or lost, in a word beside a dot, and the button that pauses it. */
import { counted } from '../../text/format.ts'
import { isRefused } from '../../live/live.ts'
import type { LogsModel } from './model.ts'
import { scrollTableToTop } from './table.tsx'

function statusOf(model: LogsModel): { tone: string; text: string } {
  const connection = model.connection.value
  if (model.still.value && connection.state !== 'lost')
    return { tone: 'search', text: model.loadingOlder.value ? 'Searching' : 'Search (not live)' }
  // Told below by name; trying again would not help.
  if (isRefused(model.error.value)) return { tone: 'lost', text: 'Not live' }
  if (connection.state === 'lost') return { tone: 'lost', text: 'Connection lost, retrying' }
  if (model.paused.value) {
    const waiting = model.waiting.value
    return { tone: 'paused', text: waiting === 0 ? 'Paused' : `Paused, ${counted(waiting, 'new event')}` }
  }
  if (connection.state === 'connecting') return { tone: 'connecting', text: 'Connecting' }
  return { tone: 'live', text: 'Live' }
}

export function StreamStatus(props: { model: LogsModel }) {
  const { model } = props
  const { tone, text } = statusOf(model)
  const toggle = (): void => {
    model.pause(!model.paused.value)
    if (!model.paused.value) scrollTableToTop()
  }
  return (
    <>
      {/* Only the kind of state is announced: a count that changes ten times a second would never fall silent. */}
      <span class="visually-hidden" role="status">
        {tone}
      </span>
      <span class={`stream-status ${tone}`} aria-hidden="true">
        <i />
        {text}
      </span>
      {!model.still.value && (
        <button type="button" class="button" onClick={toggle}>
          {model.paused.value ? 'Resume' : 'Pause'}
        </button>
      )}
    </>
  )
}
