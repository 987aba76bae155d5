/** What GET /v1/limits says beside the rate limits: what a client needs to size its requests. */
import { limits } from '../limits.ts'

export const publishedLimits = {
  eventsPerRequestMax: limits.eventsPerRequestMax,
  bodyBytesMax: limits.bodyBytesMax,
  bodyRatioMax: limits.bodyRatioMax,
  eventBytesMax: limits.eventBytesMax,
  eventDepthMax: limits.eventDepthMax,
  idCharsMax: limits.idCharsMax,
  typeCharsMax: limits.typeCharsMax,
  outcomeCharsMax: limits.outcomeCharsMax,
  typesPerOrgMax: limits.typesPerOrgMax,
  outcomesPerOrgMax: limits.outcomesPerOrgMax,
  sitesPerOrgMax: limits.sitesPerOrgMax,
  tracesPageMax: limits.tracesPageMax,
  contentEncodings: ['gzip', 'deflate', 'br', 'zstd'],
  contentTypes: ['application/json', 'application/x-ndjson'],
}
