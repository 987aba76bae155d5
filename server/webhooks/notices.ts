/** What people must be told about their endpoints without having looked for it. */
import type { EndpointJson } from './endpoints.ts'

export interface Notice {
  code: 'endpoint_failing' | 'endpoint_paused_failing' | 'endpoint_paused_gone' | 'events_missed'
  endpointId: string
  message: string
}

export function notices(endpoints: EndpointJson[]): Notice[] {
  return endpoints.flatMap((endpoint) => {
    const { id, url, pausedReason, failingSince, missed } = endpoint
    const found: Notice[] = []
    const add = (code: Notice['code'], message: string) => found.push({ code, endpointId: id, message })
    if (pausedReason === 'failing') {
      add(
        'endpoint_paused_failing',
        `${url} has only failed since ${failingSince}. It is paused and tried once an hour.`,
      )
    } else if (pausedReason === 'gone') {
      add('endpoint_paused_gone', `${url} answered 410 Gone and is paused until somebody resumes it.`)
    } else if (failingSince !== null) {
      add('endpoint_failing', `${url} has failed since ${failingSince}.`)
    }
    if (missed > 0)
      add('events_missed', `${missed} events for ${url} were removed by retention before they were sent.`)
    return found
  })
}
