/** The store's interface for the versions of each site's robots.txt, and the test of a new one. */
import type { AuditEntry } from './audit.ts'

export interface RobotsVersion {
  siteId: string
  version: number // of the site, from 1 in the order in which they were set
  fromMs: number // in force from here until the next one
  setAtMs: number
  setBy: string // as an audit actor
  digest: string // hex SHA-256 of the text
  bytes: number // of the text in UTF-8
}

export interface StoredRobots extends RobotsVersion {
  text: string
}

export interface SetRobots {
  orgId: string
  siteId: string
  text: string
  fromMs: number
  now: number
  setBy: string
  sitesMax: number // limit per organization
  versionsMax: number // stored per site, those in force last
  audit: AuditEntry // written when a version is stored
}

/** `same`: the version in force at that time has this text already. `over`: the organization has `sitesMax` sites. */
export type SetRobotsResult = { state: 'stored' | 'same'; version: number } | { state: 'over' }

export interface RobotsTestQuery {
  orgId: string
  siteId: string
  text: string // of the robots.txt to test
  sinceMs: number // inclusive
  untilMs: number // exclusive
  agentsMax: number // others are in the sums only
  pagesMax: number // examples per agent
  budgetMs: number
}

interface RobotsTestCounts {
  requests: number
  disallowed: number // by the new text
  wasDisallowed: number // by the version in force at the time of the request
}

/** Requests by agents (`agent.requested`), judged by their pages: queries are not stored. */
export interface RobotsTest extends RobotsTestCounts {
  agents: (RobotsTestCounts & {
    vendor: string | null
    name: string
    /** Pages that the new text disallows, most frequent first, with its line. */
    pages: { page: string; count: number; line: number }[]
  })[] // most disallowed first
  /** False when the time was over: only the newest requests were counted, from `exactSinceMs` on. */
  complete: boolean
  exactSinceMs: number
}

export interface RobotsStore {
  /** `conflict` when another version is in force from exactly this time. */
  set(command: SetRobots): Promise<SetRobotsResult>
  /** The versions of a site, in force last first. */
  list(query: { orgId: string; siteId: string }): Promise<RobotsVersion[]>
  /** The version that is in force last, of each site that has one, by site. */
  sites(orgId: string): Promise<RobotsVersion[]>
  /** One version with its text. */
  find(query: { orgId: string; siteId: string; version: number }): Promise<StoredRobots | null>
  /** Judges the stored requests of a site, on a reader thread, from columns. */
  test(query: RobotsTestQuery): Promise<RobotsTest>
}
