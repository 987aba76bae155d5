/** The webhook verbs of the writer and the readers, by name. */
import type { DeliveryQuery, WebhookStore } from '../../contract/webhooks.ts'
import { findDelivery, listDeliveries, pruneDeliveries } from './deliveries.ts'
import { replayDeadDeliveries, replayDelivery, scheduleDelivery } from './deliveries.ts'
import {
  activeEndpoints,
  advanceEndpoint,
  bareEndpoints,
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
} from './endpoints.ts'
import { findEndpoint, listEndpoints, moveEndpoint, pauseEndpoint, resumeEndpoint } from './endpoints.ts'
import { rotateEndpointSecret, startProbes } from './endpoints.ts'
import { findOrgSecret, orgSecret, rotateOrgSecret } from './endpoints.ts'
import { changeRule, createRule, deleteRule, listIncidents, listRules } from './rules.ts'
import { acknowledgeIncident, openIncident, openIncidents, resolveIncident } from './rules.ts'
import { nextDueAt, recordAndClaim, shiftTimes } from './record-and-claim.ts'

export const webhookWriteVerbs = {
  'webhooks.schedule': scheduleDelivery,
  'webhooks.replay': replayDelivery,
  'webhooks.replayDead': replayDeadDeliveries,
  'webhooks.recordAndClaim': recordAndClaim,
  'webhooks.shiftTimes': shiftTimes,
  'webhooks.prune': pruneDeliveries,
  'webhooks.orgSecret': orgSecret,
  'webhooks.rotateOrgSecret': rotateOrgSecret,
  'webhooks.createEndpoint': createEndpoint,
  'webhooks.changeEndpoint': changeEndpoint,
  'webhooks.pauseEndpoint': pauseEndpoint,
  'webhooks.resumeEndpoint': resumeEndpoint,
  'webhooks.moveEndpoint': moveEndpoint,
  'webhooks.rotateEndpointSecret': rotateEndpointSecret,
  'webhooks.deleteEndpoint': deleteEndpoint,
  'webhooks.advance': advanceEndpoint,
  'webhooks.startProbes': startProbes,
  'webhooks.createRule': createRule,
  'webhooks.changeRule': changeRule,
  'webhooks.deleteRule': deleteRule,
  'webhooks.openIncident': openIncident,
  'webhooks.resolveIncident': resolveIncident,
  'webhooks.acknowledgeIncident': acknowledgeIncident,
}

export const webhookReadVerbs = {
  'webhooks.nextDueAt': nextDueAt,
  'webhooks.find': findDelivery,
  'webhooks.list': listDeliveries,
  'webhooks.findOrgSecret': findOrgSecret,
  'webhooks.endpoints': listEndpoints,
  'webhooks.bareEndpoints': bareEndpoints,
  'webhooks.endpoint': findEndpoint,
  'webhooks.activeEndpoints': activeEndpoints,
  'webhooks.rules': listRules,
  'webhooks.openIncidents': openIncidents,
  'webhooks.incidents': listIncidents,
}
