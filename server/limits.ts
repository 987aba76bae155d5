/** Every limit of the server, with its unit in the name; GET /v1/limits publishes those that clients need. */
import { eventFields, type EventFieldName } from '../db/contract/event-fields.ts'
import {
  countsRetentionDays,
  deadLetterRetentionDays,
  deliveredRetentionDays,
} from '../db/rules/retention-days.ts'
import { dayMs } from '../db/contract/units.ts'

const fieldChars = Object.fromEntries(
  eventFields.map(({ name, charsMax }) => [`${name}CharsMax`, charsMax]),
) as { [name in EventFieldName as `${name}CharsMax`]: number }

export const limits = {
  // contract §4: ingest
  eventsPerRequestMax: 1_000,
  bodyBytesMax: 8 * 1024 * 1024, // after decompression
  bodyRatioMax: 100, // decompressed : compressed
  eventBytesMax: 64 * 1024, // UTF-8 bytes as sent
  eventDepthMax: 32, // the event itself is 1
  idCharsMax: 200, // id, siteId, sessionId
  ...fieldChars, // typeCharsMax, vendorCharsMax and so on
  errorCharsMax: 2_000,
  userAgentCharsMax: 2_000,
  detectionVersionCharsMax: 64,
  networkCharsMax: 50, // of the filter `network`
  observedAddressCharsMax: 64, // of `observed` (contract §17)
  observedBytesMax: 1024 * 1024, // of all of it, beside a large list of events
  observedBaseBytesMax: 8 * 1024, // the text that an agent signed
  observedIssuesMax: 20, // reported for one request
  issuesPerEventMax: 3, // reported for one rejected event
  rejectedExcerptBytesMax: 4 * 1024,
  // guard rails per organization
  typesPerOrgMax: 1_000,
  outcomesPerOrgMax: 100,
  sitesPerOrgMax: 1_000,
  requestBodyBytesMax: 64 * 1024 * 1024, // of any route
  // Bun's own limit: above it the connection is closed before our code sees the request, and many clients see no 413
  parserBodyBytesMax: 1024 * 1024 * 1024,
  lingerMs: 10_000, // to discard the unread body of a connection that will be closed
  lingeringMax: 64, // connections at a time: reading costs time on this thread
  // OTLP (contract §13)
  otlpBodyBytesMax: 64 * 1024 * 1024, // after decompression, as the protocol recommends
  otlpBodiesInFlightBytesMax: 160 * 1024 * 1024, // of all organizations; one body of the largest size fits
  // write queue: above either, ingest responds 503 before it reads a body
  queueBytesMax: 32 * 1024 * 1024,
  queueAgeMsMax: 1_000,
  // bodies and large responses in flight: one organization gets at most half, one key a quarter
  bodiesInFlightBytesMax: 96 * 1024 * 1024,
  responsesInFlightBytesMax: 64 * 1024 * 1024, // of large responses
  responseCountedBytes: 256 * 1024, // responses from this size on count as in flight
  responseStallMs: 30_000, // without progress of the reader
  // of a refused body that the parser drops after the response: reading 4,000 per second caused constant collections
  unreadBodyBytesMax: 64 * 1024,
  refusedBodyMs: 2_000, // to discard the body of a refused request before the connection is closed
  // tool registry and site memory (contract §5)
  toolsPerPushMax: 1_000,
  pushValuesMax: 500_000, // of a push as JSON: brackets and commas, so that a body of 8 MiB cannot fill the memory
  toolBytesMax: 64 * 1024, // a descriptor as compact JSON
  toolNameCharsMax: 128,
  toolTextCharsMax: 200, // title, group
  toolDescriptionCharsMax: 32_000,
  toolsPerSiteMax: 5_000, // removed ones included
  toolVersionsMax: 1_000, // stored per tool
  memoryVersionsMax: 200, // stored per site
  robotsVersionsMax: 100, // of robots.txt, stored per site
  robotsTestMsMax: 5_000, // of judging stored requests by a new robots.txt
  registryPageDefault: 50,
  registryPageMax: 200,
  registryPageBytesMax: 4 * 1024 * 1024,
  toolSitesCountedMax: 50, // sites counted on the WebMCP Tools page
  versionsShownMax: 50,
  differencesMax: 100, // shown between two versions
  differenceCharsMax: 2_000, // of a value shown in one
  // requests
  requestDeadlineMs: 30_000,
  pageBytesMax: 4 * 1024 * 1024 - 64 * 1024, // of events or sessions: a whole page stays below 4 MiB
  liveBytesMax: 1024 * 1024, // of events per read of a live stream
  liveStreamsMax: 400, // in total; at most half per organization, a quarter per account
  tracesPageDefault: 50,
  tracesPageMax: 200,
  searchCharsMax: 200, // the parameter q
  filterBytesMax: 3_000, // all filters of a query as JSON, because cursors contain them
  cursorCharsMax: 6_000,
  metricsDefaultMs: 30 * 24 * 3_600_000, // before now, without `since`
  histogramMsMax: 1_500, // of counting stored events for the chart above Logs; older events are omitted then
  topMsMax: 5_000, // of grouping the newest events
  filteredCountMsMax: 5_000, // of counting stored events under filters that rollups do not cover
  metricsRowsMax: 100_000,
  exploreRowsDefault: 10, // values of GET /v1/explore; the rest are one row
  exploreRowsMax: 1_000,
  exploreStepsMax: 400,
  exploreFiltersMax: 20,
  explorePathCharsMax: 200, // of a member of metadata
  explorePathPartsMax: 8,
  exploreMsMax: 25_000, // below requestDeadlineMs
  exploreStreamMsMax: 120_000, // with progress
  sessionEventsMax: 10_000, // summarized per session, the newest
  sessionPageMs: 300, // then a page of sessions is returned early
  shareLinksMax: 100, // of an organization, with those that ended in the last 90 days
  shareLinkDaysMax: 366, // until a link ends
  shareLinkEndedMs: 90 * 24 * 3_600_000, // an ended link is listed
  shareOriginsMax: 5, // sites that may show a shared page in a frame
  shareRowsMax: 10, // of each table of a shared page
  shareExploreRowsMax: 50, // of a shared Explore query
  reportRowsMax: 25, // of each table of a report
  reportFileBytesMax: 4 * 1024 * 1024, // that verify reads
  shareEventsShown: 50,
  viewsMax: 100, // saved views of an organization
  viewNameCharsMax: 80,
  viewSearchCharsMax: 2_000,
  trustReachedMs: 5_000, // of reading the sessions with detections, in slices
  ingestCountsRetentionMs: countsRetentionDays * dayMs,
  ingestHealthMs: 31 * 24 * 3_600_000, // shown at most
  rejectedShownMax: 100,
  exportsMax: 16, // concurrent, in total; at most half per organization, a quarter per key or account
  exportStallMs: 60_000, // without progress of the reader
  exportCountMs: 25_000, // for counting rows before a CSV starts; below requestDeadlineMs
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
  knownNetworkMs: 90 * 24 * 3_600_000, // an address that an account signed in from is remembered
  throttleForgottenMs: 24 * 3_600_000, // a name without an attempt
  throttleNamesMax: 50_000, // accounts, and as many senders
  linkAttemptsFree: 30, // unknown links before their sender is throttled
  setupLinkMs: 30 * 60_000,
  invitationMs: 7 * 24 * 3_600_000,
  secondFactorMs: 5 * 60_000, // between password and code
  recoveryCodes: 10,
  orgGraceMs: 7 * 24 * 3_600_000, // between requesting and performing the deletion of an organization
  keyOverlapMsMax: 90 * 24 * 3_600_000, // of a rotated key and its successor
  // answers to assistants (contract §14)
  mcpTextCharsMax: 500, // of a text of an event
  mcpEventCharsMax: 6_000, // of all texts of one event
  mcpListBytesMax: 1024 * 1024, // of the events that are read for a list
  // webhooks (contract §9)
  webhooksInFlightMax: 32,
  webhooksPerLaneMax: 2, // an endpoint, or a URL origin of an organization
  /** Of those in flight; `db/rules/webhook-share.ts` says what leaves which of them free. */
  webhookSlots: { forFirstSend: 12, forFirstTries: 14, forQuick: 16, forUntried: 20 },
  webhookHangingMax: 64, // first tries that wait for a slow receiver beside those in flight
  webhookHangingPerOrgMax: 32,
  webhookTimeoutMs: 15_000, // an attempt, name look-up included
  webhookLeaseMs: 30_000, // longer than an attempt and recording it
  webhookRetriesMax: 8, // retries of an endpoint
  webhookRetriesMsMax: 24 * 3_600_000, // all of them together
  webhookInterruptionsMax: 3, // consecutive lost leases that do not count as a retry
  webhookRetryAfterMsMax: 3_600_000, // of a receiver
  webhookBatchEventsMax: 100,
  webhookBatchBytesMax: 512 * 1024,
  webhookPendingBatchesMax: 100, // per endpoint; above it, fan-out to it pauses
  webhookPayloadBytesMax: 512 * 1024,
  webhookPageBytesMax: 3 * 1024 * 1024, // of payloads: a whole page stays below 4 MiB
  webhookEndpointsPerOrgMax: 100,
  webhookRulesPerOrgMax: 100,
  alertGroupsMax: 100, // groups of a rule that are evaluated
  alertSilenceMsMax: 90 * 24 * 3_600_000,
  alertBacktestsMax: 2, // concurrent, per organization
  alertSeriesMax: 1_000, // on /metrics
  webhookDeliveredRetentionMs: deliveredRetentionDays * dayMs,
  webhookDeadRetentionMs: deadLetterRetentionDays * dayMs,
  webhookOldSecretMs: 24 * 3_600_000, // the previous secret is still valid
  webhookStopGraceMs: 5_000,
} as const

/** The part of GET /v1/limits beside the rate limits: what a client needs to size its requests. */
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
  observed: true, // JSON bodies may have what the sender saw of the requests
}
