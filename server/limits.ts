/** Every limit of the service, named once with its unit; `GET /v1/limits` publishes the part clients need. */
import { eventFields, type EventFieldName } from '../db/contract/event-fields.ts'

const fieldChars = Object.fromEntries(
  eventFields.map(({ name, charsMax }) => [`${name}CharsMax`, charsMax]),
) as { [name in EventFieldName as `${name}CharsMax`]: number }

export const limits = {
  // contract §4: ingest
  eventsPerRequestMax: 1_000,
  bodyBytesMax: 8 * 1024 * 1024, // after decompression
  bodyRatioMax: 100, // inflated : compressed
  eventBytesMax: 64 * 1024, // UTF-8 bytes as sent
  eventDepthMax: 32, // the event itself is 1
  idCharsMax: 200, // id, siteId, sessionId
  ...fieldChars, // typeCharsMax, vendorCharsMax and so on
  errorCharsMax: 2_000,
  userAgentCharsMax: 2_000,
  detectionVersionCharsMax: 64,
  issuesPerEventMax: 3, // reported for one rejected event
  rejectedExcerptBytesMax: 4 * 1024,
  // guard rails per organization
  typesPerOrgMax: 1_000,
  outcomesPerOrgMax: 100,
  sitesPerOrgMax: 1_000,
  // the parser's own cap: above it the connection is cut before our code sees the request
  parserBodyBytesMax: 64 * 1024 * 1024,
  // write queue: beyond either, 503 before anything is taken
  queueBytesMax: 32 * 1024 * 1024,
  queueAgeMsMax: 1_000,
  // bodies and large answers under way: one organization may have half, one key a quarter
  bodiesUnderWayBytesMax: 96 * 1024 * 1024,
  answersUnderWayBytesMax: 64 * 1024 * 1024, // those that count
  answerCountedBytes: 256 * 1024, // from this size on an answer counts
  answerStallMs: 30_000, // without the receiver reading anything
  refusedBodiesMax: 8, // dropped at a time: reading them takes this thread's time
  refusedBodyMs: 2_000, // for a body that is not taken to arrive and be dropped, before the connection is closed
  // tool registry and site memory (contract §5)
  toolsPerPushMax: 1_000,
  toolBytesMax: 64 * 1024, // a descriptor as compact JSON
  toolNameCharsMax: 128,
  toolTextCharsMax: 200, // title, group
  toolDescriptionCharsMax: 32_000,
  toolsPerSiteMax: 5_000, // removed ones included
  toolVersionsMax: 1_000, // kept of each tool
  memoryVersionsMax: 200, // kept of each site
  registryPageDefault: 50,
  registryPageMax: 200,
  registryPageBytesMax: 4 * 1024 * 1024,
  toolSitesCountedMax: 50, // sites whose calls the page of tools counts one by one
  versionsShownMax: 50,
  differencesMax: 100, // shown between two versions
  differenceCharsMax: 2_000, // of a value shown in one
  // requests
  requestDeadlineMs: 30_000,
  pageBytesMax: 4 * 1024 * 1024 - 64 * 1024, // of events or sessions: with the rest a page is below 4 MiB
  liveBytesMax: 1024 * 1024, // of events that a live stream reads at a time
  liveStreamsMax: 400, // of everybody; of one organization half, of one account a quarter
  tracesPageDefault: 50,
  tracesPageMax: 200,
  searchCharsMax: 200, // the parameter q
  filterBytesMax: 3_000, // all filters of a query as JSON: a cursor carries them
  cursorCharsMax: 6_000,
  metricsDefaultMs: 30 * 24 * 3_600_000, // before now, without `since`
  histogramMsMax: 1_500, // of counting stored events for the bars above Logs; older ones are left out then
  topMsMax: 5_000, // of grouping the newest events by their values
  filteredCountMsMax: 5_000, // of counting stored events under filters, which rollups cannot
  metricsRowsMax: 100_000,
  sessionEventsMax: 10_000, // counted and told of one session, the newest
  sessionPageMs: 300, // after which a page of sessions comes back short
  viewsMax: 100, // saved views of an organization
  viewNameCharsMax: 80,
  viewSearchCharsMax: 2_000,
  trustReachedMs: 5_000, // reading the sessions of a range of detections, in slices
  ingestCountsKeptMs: 400 * 24 * 3_600_000,
  ingestHealthMs: 31 * 24 * 3_600_000, // shown at most
  rejectedShownMax: 100,
  exportsMax: 16, // streamed at a time, of everybody; of one organization half, of one key or account a quarter
  exportStallMs: 60_000, // without the receiver taking anything
  exportCountMs: 25_000, // to count rows before a CSV begins; below requestDeadlineMs
  labelCharsMax: 80,
  jsonBodyBytesMax: 64 * 1024, // dashboard and gateway bodies that are not ingest
  jsonDepthMax: 100, // of the same bodies
  auditPageDefault: 50,
  auditPageMax: 200,
  emailCharsMax: 254,
  passwordCharsMin: 8,
  passwordCharsMax: 256,
  signInIdleMs: 12 * 3_600_000,
  signInAbsoluteMs: 7 * 24 * 3_600_000,
  knownNetworkMs: 90 * 24 * 3_600_000, // that an account signed in from an address is remembered
  linkTriesFree: 30, // links that do not exist, before their sender waits
  setupLinkMs: 30 * 60_000,
  invitationMs: 7 * 24 * 3_600_000,
  secondFactorMs: 5 * 60_000, // between password and code
  recoveryCodes: 10,
  orgGraceMs: 7 * 24 * 3_600_000, // between asking to delete an organization and doing it
  keyOverlapMsMax: 90 * 24 * 3_600_000, // of a rotated key and its successor
  // webhooks (contract §9)
  webhooksInFlightMax: 32,
  webhooksPerLaneMax: 2, // an endpoint, or a URL origin of an organization
  webhookSlotsForFirst: 12, // of those in flight, for the first send of organizations that send nothing
  webhookSlotsForQuick: 16, // receivers that hang, or were never tried, leave these free
  webhookTimeoutMs: 15_000, // an attempt, name look-up included
  webhookLeaseMs: 30_000, // longer than an attempt and the recording of it
  webhookWaitsMax: 8, // before the retries of an endpoint
  webhookWaitsMsMax: 24 * 3_600_000, // all of them together
  webhookInterruptionsMax: 3, // lost leases in a row that use up no retry
  webhookRetryAfterMsMax: 3_600_000, // of a receiver
  webhookBatchEventsMax: 100,
  webhookBatchBytesMax: 512 * 1024,
  webhookPendingBatchesMax: 100, // of an endpoint: beyond, its position waits
  webhookPayloadBytesMax: 512 * 1024,
  webhookPageBytesMax: 3 * 1024 * 1024, // of payloads; with the rest around them a page stays under 4 MiB
  webhookEndpointsPerOrgMax: 100,
  webhookRulesPerOrgMax: 100,
  webhookDeliveredKeptMs: 7 * 24 * 3_600_000,
  webhookDeadKeptMs: 90 * 24 * 3_600_000,
  webhookOldSecretMs: 24 * 3_600_000, // the previous secret signs too
  webhookStopGraceMs: 5_000,
} as const

/** What GET /v1/limits says beside the rate limits: what a client needs to size its requests. */
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
