/** What people must be told about their endpoints and open alerts without having looked for it. */
import type { Endpoint, Incident } from '../../../db/contract/webhooks.ts'
import { isoTime } from '../../clock.ts'
import { incidentSentence, worstFirst } from './alerts.ts'

export interface Notice {
  code:
    | 'alert_open'
    | 'clock_jumped'
    | 'endpoint_failing'
    | 'endpoint_paused_failing'
    | 'endpoint_paused_gone'
    | 'events_missed'
  endpointId: string | null // null: about no endpoint
  message: string
  href?: string // where to do something about it; without: the Webhooks page
}

/** Open alerts that are told one by one; how many more there are is said in one notice. */
const alertsTold = 5

/** Of alerts that are not resolved: those that nobody has acknowledged, worst first. */
export function alertNotices(unresolved: Incident[]): Notice[] {
  const open = worstFirst(unresolved.filter(({ acknowledgedAtMs }) => acknowledgedAtMs === null))
  const told = open.slice(0, alertsTold).map((incident) => alert(`Alert: ${incidentSentence(incident)}`))
  const more = open.length - told.length
  return more > 0 ? [...told, alert(`${more} more alerts are open.`)] : told
}

const alert = (message: string): Notice => ({ code: 'alert_open', endpointId: null, message })

export function endpointNotices(endpoints: Endpoint[]): Notice[] {
  return endpoints.flatMap((endpoint) => {
    const { id, url, pausedReason, failingSinceMs, missed } = endpoint
    const failingSince = failingSinceMs === null ? null : isoTime(failingSinceMs)
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
