/** The tools about sessions and about what changed: find_sessions, session_story and changes. */
import { differences, type Difference } from '../api/registry/record.ts'
import { targetName } from '../audit/entry.ts'
import { isoTime } from '../clock.ts'
import { AppError } from '../errors.ts'
import { encodeCursor } from '../http/request.ts'
import { limits } from '../limits.ts'
import type { Session } from '../../db/contract/sessions.ts'
import type { StoredMemory, StoredTool } from '../../db/contract/registry.ts'
import { briefEvent, countStored, fixedTimes, walkOf } from './event-tools.ts'
import {
  answerOf,
  numberArg,
  readQuestion,
  textArg,
  type Args,
  type Asking,
  type Question,
  type Run,
} from './question.ts'
import { clean, uncleaned } from './untrusted.ts'

function sessionView(session: Session) {
  const listCounts = (counts: { [name: string]: number }) =>
    Object.entries(counts).map(([name, count]) => ({ untrusted: clean(name, 80), count }))
  const { id, siteIds, vendor, trust } = session
  const texts = { vendor, class: session.class, trust }
  return {
    firstSeenAt: isoTime(session.firstSeenAtMs),
    lastSeenAt: isoTime(session.lastSeenAtMs),
    events: session.events,
    eventsComplete: !session.isCut,
    outcomes: listCounts(session.byOutcome),
    kinds: listCounts(session.byPillar),
    untrusted: {
      id: clean(id),
      siteIds: siteIds
        .slice(0, 5)
        .map((siteId) => clean(siteId, 200))
        .join(', '),
      ...Object.fromEntries(
        Object.entries(texts).flatMap(([name, value]) => (value === null ? [] : [[name, clean(value, 120)]])),
      ),
    },
  }
}

async function findSessions(asking: Asking, args: Args) {
  const { store, cursorCipher, orgId } = asking
  const { limit: _limit, cursor: _cursor, ...filters } = args
  const cursor = walkOf(asking, 'mcp-sessions', args)
  const question = readQuestion(asking, cursor?.filters.asked ?? filters)
  const [page, counts] = await Promise.all([
    store.sessions.page({
      orgId,
      filter: question.filter,
      limit: numberArg(args, 'limit', 6),
      before: cursor?.position ?? null,
      ceilingSeq: cursor?.position.ceilingSeq ?? null,
      eventsMax: limits.sessionEventsMax,
      budgetMs: limits.sessionPageMs,
    }),
    cursor === null ? countStored(asking, question) : cursor.filters,
  ])
  const { next, ceilingSeq } = page
  const { total, complete } = counts ?? { total: null, complete: false }
  const walked = { asked: cursor?.filters.asked ?? fixedTimes(filters, question), total, complete }
  return {
    ...answerOf(question, {
      count: total,
      complete: next === null && complete,
      link: question.link('/sessions'),
    }),
    sessions: page.sessions.map(sessionView),
    nextCursor: next && encodeCursor(cursorCipher, 'mcp-sessions', orgId, walked, { ...next, ceilingSeq }),
  }
}

async function sessionStory(asking: Asking, args: Args) {
  const { store, cursorCipher, orgId, baseUrl } = asking
  const givenId = textArg(args, 'id') ?? ''
  const cursor = walkOf(asking, 'mcp-story', args)
  const read = (sessionId: string) =>
    store.sessions.story({
      orgId,
      sessionId,
      limit: numberArg(args, 'limit', 12),
      bytesMax: limits.mcpListBytesMax,
      after: cursor?.position ?? null,
      ceilingSeq: cursor?.position.ceilingSeq ?? null,
      eventsMax: limits.sessionEventsMax,
    })
  const id = typeof cursor?.filters.asked['id'] === 'string' ? cursor.filters.asked['id'] : givenId
  const plain = uncleaned(id)
  const story = (await read(id)) ?? (plain === id ? null : await read(plain))
  if (story === null) throw new AppError('not_found', 'No session has this id.')
  const { session, events, next, ceilingSeq } = story
  const walked = { asked: { id: session.id }, total: session.events, complete: !session.isCut }
  return {
    filter: { sessionId: clean(session.id) },
    range: { since: isoTime(session.firstSeenAtMs), until: isoTime(session.lastSeenAtMs + 1) },
    count: session.events,
    complete: next === null && !session.isCut,
    link: `${baseUrl}/sessions?${new URLSearchParams({ session: session.id })}`,
    session: sessionView(session),
    events: events.map(({ json, occurredAtMs }) => storyEvent(json, occurredAtMs)),
    nextCursor: next && encodeCursor(cursorCipher, 'mcp-story', orgId, walked, { ...next, ceilingSeq }),
  }
}

/** Without what all events of the session share. */
function storyEvent(json: string, occurredAtMs: number) {
  const brief = briefEvent(JSON.parse(json) as { [name: string]: unknown }, occurredAtMs)
  const { sessionId: _session, siteId: _site, class: _class, vendor: _vendor, ...untrusted } = brief.untrusted
  return { ...brief, untrusted }
}

interface Change {
  at: string
  kind: 'tool' | 'memory' | 'audit'
  change: string
  untrusted: { [name: string]: string }
}

const auditMax = 1_000

async function changes(asking: Asking, args: Args) {
  const question = readQuestion(asking, { last: '7d', ...args, ...unsetLast(args) })
  const max = numberArg(args, 'limit', 10)
  const [tools, memories, audit] = await Promise.all([
    changedTools(asking, question),
    changedMemories(asking, question),
    asking.may('audit:read') ? auditEntries(asking, question) : null,
  ])
  const newest = [...tools, ...memories, ...(audit?.entries ?? [])].sort((a, b) => b.atMs - a.atMs)
  const shown = await Promise.all(newest.slice(0, max).map(({ atMs, read }) => read(isoTime(atMs))))
  return {
    ...answerOf(question, {
      count: newest.length,
      complete: newest.length === shown.length && audit?.isWhole !== false,
      link: `${asking.baseUrl}/settings/audit`,
    }),
    tools: tools.length,
    memory: memories.length,
    audit: audit === null ? null : audit.entries.length,
    changes: shown,
  }
}

const unsetLast = ({ since, until }: Args): Args =>
  since === undefined && until === undefined ? {} : { last: undefined }

interface Found {
  atMs: number
  read(changedAt: string): Promise<Change>
}

const isWithin = ({ filter: { sinceMs, untilMs = Infinity } }: Question, ms: number): boolean =>
  ms >= sinceMs && ms < untilMs

async function changedTools({ store, orgId }: Asking, question: Question): Promise<Found[]> {
  const toolChanges: Found[] = []
  let lastTool: Pick<StoredTool, 'siteId' | 'name'> | null = null
  do {
    const page: { tools: StoredTool[]; hasMore: boolean } = await store.registry.tools({
      orgId,
      siteIds: question.filter.siteIds ?? [],
      withRemoved: true,
      after: lastTool,
      limit: limits.registryPageMax,
      bytesMax: limits.registryPageBytesMax,
    })
    for (const { siteId, name, changedAtMs, removedAtMs } of page.tools) {
      const atMs = Math.max(changedAtMs, removedAtMs ?? 0)
      if (isWithin(question, atMs))
        toolChanges.push({ atMs, read: (changedAt) => toolChange({ store, orgId }, siteId, name, changedAt) })
    }
    lastTool = page.hasMore ? (page.tools.at(-1) ?? null) : null
  } while (lastTool !== null)
  return toolChanges
}

async function toolChange(
  { store, orgId }: Pick<Asking, 'store' | 'orgId'>,
  siteId: string,
  name: string,
  changedAt: string,
): Promise<Change> {
  const history = await store.registry.tool({ orgId, siteId, name, limit: 2 })
  const [now, previousVersion] = history?.versions ?? []
  const fields =
    now === undefined || previousVersion === undefined
      ? []
      : differences(JSON.parse(previousVersion.json), JSON.parse(now.json))
  const untrusted = { siteId: clean(siteId, 200), tool: clean(name, 200), ...changedFields(fields) }
  return { at: changedAt, kind: 'tool', change: now?.change ?? 'changed', untrusted }
}

function changedFields(fields: Difference[]): { fields?: string } {
  if (fields.length === 0) return {}
  return { fields: clean(fields.map(({ path, change }) => `${change} ${path || '/'}`).join(', '), 200) }
}

async function changedMemories({ store, orgId }: Asking, question: Question): Promise<Found[]> {
  const memoryChanges: Found[] = []
  let lastSiteId: string | null = null
  do {
    const page: { memories: StoredMemory[]; hasMore: boolean } = await store.registry.memories({
      orgId,
      siteIds: question.filter.siteIds ?? [],
      after: lastSiteId,
      limit: limits.registryPageMax,
      bytesMax: limits.registryPageBytesMax,
    })
    for (const { siteId, atMs, version, score } of page.memories) {
      const untrusted = { siteId: clean(siteId, 200), version: String(version), score: String(score) }
      const change = version === 1 ? 'added' : 'changed'
      if (isWithin(question, atMs))
        memoryChanges.push({
          atMs,
          read: async (changedAt) => ({ at: changedAt, kind: 'memory', change, untrusted }),
        })
    }
    lastSiteId = page.hasMore ? (page.memories.at(-1)?.siteId ?? null) : null
  } while (lastSiteId !== null)
  return memoryChanges
}

async function auditEntries(
  { store, orgId }: Asking,
  { filter: { sinceMs, untilMs } }: Question,
): Promise<{ entries: Found[]; isWhole: boolean }> {
  const filter = { sinceMs, ...(untilMs === undefined ? {} : { untilMs }) }
  const { entries, next } = await store.audit.list({ orgId, limit: auditMax, beforeSeq: null, filter })
  const auditChanges = entries.map((entry): Found => ({
    atMs: entry.occurredAtMs,
    async read(changedAt) {
      const actorLabel = entry.metadata['actorLabel']
      const name = targetName(entry)
      const untrusted = {
        actor: clean(typeof actorLabel === 'string' ? actorLabel : entry.actor, 120),
        target: clean(name ?? entry.target, 120),
      }
      return { at: changedAt, kind: 'audit', change: entry.action, untrusted }
    },
  }))
  return { entries: auditChanges, isWhole: next === null }
}

export const sessionTools: { readonly [name: string]: Run } = {
  find_sessions: findSessions,
  session_story: sessionStory,
  changes,
}
