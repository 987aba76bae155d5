/** The webhook part of the store, each verb sent to the thread that does it. */
import type { WebhookStore } from '../../contract/webhooks.ts'
import type { Threads } from '../threads/threads.ts'

type Wakes = (command: never) => (string | null)[]

const due: Wakes = () => [null]
const advances = ({ orgId }: { orgId: string }) => [null, orgId]

/** After these verbs deliveries are due, or endpoints may advance. */
const wakingVerbs = {
  'webhooks.schedule': due,
  'webhooks.replay': due,
  'webhooks.replayDead': due,
  'webhooks.advance': ({ delivery }: { delivery: unknown }) => (delivery === null ? [] : [null]),
  'webhooks.startProbes': due,
  'webhooks.openIncident': due,
  'webhooks.resolveIncident': due,
  'webhooks.changeEndpoint': advances,
  'webhooks.resumeEndpoint': advances,
  'webhooks.moveEndpoint': advances,
}

export function webhookStore({ read, write: writeQuietly }: Pick<Threads, 'read' | 'write'>): WebhookStore {
  const listeners = new Set<(orgId: string | null) => void>()
  const write: typeof writeQuietly = (verb, command) => {
    const done = writeQuietly(verb, command)
    const wakes: Wakes | undefined = wakingVerbs[verb as keyof typeof wakingVerbs]
    if (wakes === undefined) return done
    return done.then((result) => {
      const orgIds = wakes(command as never)
      for (const orgId of orgIds) for (const listener of listeners) listener(orgId)
      return result
    })
  }
  return {
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    nextDueAt: (afterMs) => read('webhooks.nextDueAt', afterMs),
    schedule: (command) => write('webhooks.schedule', command),
    find: (orgId, id) => read('webhooks.find', { orgId, id }),
    list: (query) => read('webhooks.list', query),
    replay: (command) => write('webhooks.replay', command),
    replayDead: (command) => write('webhooks.replayDead', command),
    turn: (command) => write('webhooks.turn', command),
    shiftTimes: (command) => write('webhooks.shiftTimes', command),
    prune: (command) => write('webhooks.prune', command),
    orgSecret: (command) => write('webhooks.orgSecret', command),
    findOrgSecret: (orgId) => read('webhooks.findOrgSecret', orgId),
    rotateOrgSecret: (command) => write('webhooks.rotateOrgSecret', command),
    createEndpoint: (command) => write('webhooks.createEndpoint', command),
    endpoints: (orgId) => read('webhooks.endpoints', orgId),
    bareEndpoints: (orgId) => read('webhooks.bareEndpoints', orgId),
    endpoint: (orgId, id) => read('webhooks.endpoint', { orgId, id }),
    activeEndpoints: () => read('webhooks.activeEndpoints', null),
    changeEndpoint: (command) => write('webhooks.changeEndpoint', command),
    pauseEndpoint: (command) => write('webhooks.pauseEndpoint', command),
    resumeEndpoint: (command) => write('webhooks.resumeEndpoint', command),
    moveEndpoint: (command) => write('webhooks.moveEndpoint', command),
    rotateEndpointSecret: (command) => write('webhooks.rotateEndpointSecret', command),
    deleteEndpoint: (command) => write('webhooks.deleteEndpoint', command),
    advance: (command) => write('webhooks.advance', command),
    startProbes: (command) => write('webhooks.startProbes', command),
    createRule: (command) => write('webhooks.createRule', command),
    rules: (orgId) => read('webhooks.rules', orgId),
    changeRule: (command) => write('webhooks.changeRule', command),
    deleteRule: (command) => write('webhooks.deleteRule', command),
    openIncidents: (orgId) => read('webhooks.openIncidents', orgId),
    incidents: (query) => read('webhooks.incidents', query),
    openIncident: (command) => write('webhooks.openIncident', command),
    acknowledgeIncident: (command) => write('webhooks.acknowledgeIncident', command),
    resolveIncident: (command) => write('webhooks.resolveIncident', command),
  }
}
