/** Lists the operations of the public API in the order of the reference. A test compares the list with the routes. */
import { auditOperations } from './service-model.ts'
import { ingestOperations } from './events-model.ts'
import type { Operation } from './operation-model.ts'
import { registryOperations } from './registry-model.ts'
import { sessionOperations } from './events-model.ts'
import { serviceOperations } from './service-model.ts'
import { traceOperations } from './events-model.ts'
import { webhookOperations } from './webhook-operations-model.ts'

export const operations: readonly Operation[] = [
  ...ingestOperations,
  ...traceOperations,
  ...sessionOperations,
  ...registryOperations,
  ...serviceOperations,
  ...auditOperations,
  ...webhookOperations,
]
