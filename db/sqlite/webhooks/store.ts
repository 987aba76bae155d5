/** The webhook part of the store, each verb sent to the thread that does it. */
import type { WebhookStore } from '../../webhook-store.ts'
import type { Threads } from '../threads.ts'

export function webhookStore({ read, write }: Pick<Threads, 'read' | 'write'>): WebhookStore {
  return {
    schedule: (command) => write('webhooks.schedule', command),
    find: (orgId, id) => read('webhooks.find', { orgId, id }),
    list: (query) => read('webhooks.list', query),
    replay: (command) => write('webhooks.replay', command),
    replayDead: (command) => write('webhooks.replayDead', command),
    turn: (command) => write('webhooks.turn', command),
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
    resolveIncident: (command) => write('webhooks.resolveIncident', command),
  }
}
