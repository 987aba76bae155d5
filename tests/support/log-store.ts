/** A store of access logs in memory, with the promises of the real one, which can fail when a test asks for it. */
import { StoreError } from '../../db/contract/errors.ts'
import type { AccessResult, EventBatch, Store } from '../../db/contract/store.ts'

export interface MemoryLogStore extends Pick<Store, 'events' | 'accessLogs' | 'secret'> {
  /** What was stored, in order. */
  events_: { type: string; page: string; sessionId: string }[]
  sums(): { lines: number; people: number; excluded: number; bad: number }
  sources(): string[]
  /** The next batch fails: nothing of it is stored, or all of it although the caller does not hear of it. */
  failNext(mode: 'fail' | 'unsure'): void
}

export function memoryLogStore(): MemoryLogStore {
  const ids = new Set<string>()
  const logs = new Map<string, { position: number; tail: string }>()
  const sums = { lines: 0, people: 0, excluded: 0, bad: 0 }
  const events_: MemoryLogStore['events_'] = []
  let failure: 'fail' | 'unsure' | null = null
  const away = (): never => {
    failure = null
    throw new StoreError('unavailable', 'the database does not answer')
  }
  return {
    events_,
    sums: () => ({ ...sums }),
    sources: () => [...logs.keys()],
    secret: async () => 'a secret',
    failNext: (mode) => void (failure = mode),
    accessLogs: {
      async position({ source }) {
        await Bun.sleep(0)
        return logs.get(source) ?? null
      },
    } as Store['accessLogs'],
    events: {
      async append({ events, access }: EventBatch) {
        await Bun.sleep(0)
        if (failure === 'fail') away()
        const { source, from, to, tail, requests } = access!
        const logState = logs.get(source) ?? { position: 0, tail: '' }
        const state: AccessResult['state'] =
          to <= logState.position ? 'known' : from === logState.position ? 'stored' : 'behind'
        let accepted = 0
        let deduped = 0
        let stored = 0
        let requestsKnown = 0
        if (requests.length !== events.length) throw new Error('requests do not fit events')
        if (state !== 'behind')
          for (const [index, { id, type, json }] of events.entries()) {
            const isRequest = requests[index] !== null
            if (ids.has(id)) {
              deduped++
              if (isRequest) requestsKnown++
            } else {
              if (isRequest) stored++
              ids.add(id)
              accepted++
              const { metadata, sessionId } = JSON.parse(json) as {
                metadata: { page: string }
                sessionId: string
              }
              events_.push({ type, page: metadata.page, sessionId })
            }
          }
        if (state === 'stored') {
          for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += access!.sums[name]
          logs.set(source, { position: to, tail })
        }
        if (failure === 'unsure') away()
        const currentState = logs.get(source) ?? logState
        const known_ = { stored, deduped: requestsKnown, rejected: 0 }
        return { accepted, deduped, rejected: [], access: { state, ...currentState, ...known_ } }
      },
    } as unknown as Store['events'],
  }
}
