/** The shared worker: one live stream for all tabs of this browser (`hub.ts`). */
import type { EventFilter } from '../api/event-shapes.ts'
import { filterParams } from '../api/event-shapes.ts'
import { createHub } from './hub.ts'
import { hereMsMax, type ToTab, type ToWorker } from '../api/shared-live.ts'

/** Each person and organization in this browser has its own stream. */
const hubs = new Map<string, ReturnType<typeof createHub>>()

function hubOf(base: string, reader: string) {
  const key = JSON.stringify([base, reader])
  const existingHub = hubs.get(key)
  if (existingHub) return existingHub
  const ask = (path: string, signal: AbortSignal, accept: string) =>
    fetch(base + path, { credentials: 'same-origin', cache: 'no-store', signal, headers: { accept } })
  const hub = createHub({
    stream: (signal) => ask('/api/live', signal, 'text/event-stream'),
    missed: (filter: EventFilter, position: string, until: string, signal) => {
      const params = filterParams(filter)
      params.set('after', position)
      params.set('to', until)
      return ask(`/api/live/missed?${params}`, signal, 'application/json')
    },
  })
  hubs.set(key, hub)
  return hub
}

function serve(port: MessagePort): void {
  const streams = new Map<number, () => void>()
  const post = (message: ToTab): void => port.postMessage(message)
  let leaveTimer = 0
  const leave = (): void => {
    for (const close of streams.values()) close()
    streams.clear()
  }
  const restartTimer = (): void => {
    clearTimeout(leaveTimer)
    leaveTimer = Number(setTimeout(leave, hereMsMax))
  }
  const open = ({ n, base, reader, filter, after: position }: ToWorker & { kind: 'open' }): void => {
    const close = hubOf(base, reader).follow(filter, position, {
      begin: () => post({ kind: 'begin', n }),
      text: (text) => post({ kind: 'text', n, text }),
      end: () => post({ kind: 'end', n }),
      unreachable: () => post({ kind: 'unreachable', n }),
      refuse: (answer) =>
        void answer.text().then((body) => {
          post({ kind: 'refused', n, status: answer.status, headers: [...answer.headers], body })
        }),
    })
    streams.set(n, close)
  }
  port.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
    restartTimer()
    if (data.kind === 'open') open(data)
    else if (data.kind === 'close') {
      streams.get(data.n)?.()
      streams.delete(data.n)
    } else if (data.kind === 'gone') leave()
  })
  port.start()
  restartTimer()
}

self.addEventListener('connect', (event) => {
  for (const port of (event as MessageEvent).ports) serve(port)
})
