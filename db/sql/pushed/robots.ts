/** Versions of each site's robots.txt: a row per version with its text, compressed. */
import { StoreError } from '../../contract/errors.ts'
import type { Database } from '../database.ts'
import type { RobotsVersion, SetRobots, SetRobotsResult, StoredRobots } from '../../contract/robots.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import { compressed, decompressed } from './pushed.ts'

export const robotsWriteVerbs = { 'robots.set': setRobots }

export const robotsReadVerbs = {
  'robots.list': listRobots,
  'robots.sites': listSites,
  'robots.find': findRobots,
}

const columns = `site_id AS siteId, version, from_ms AS fromMs, set_at_ms AS setAtMs, set_by AS setBy,
  digest, bytes`

function setRobots({ db }: WriteContext, command: SetRobots): SetRobotsResult {
  const { orgId, siteId, text, fromMs, now, setBy, versionsMax } = command
  const digest = Bun.SHA256.hash(text, 'hex')
  const versions = versionsOf(db, orgId, siteId)
  const inForce = versions.find((entry) => entry.fromMs <= fromMs)
  if (inForce?.digest === digest) return { state: 'same', version: inForce.version }
  if (inForce?.fromMs === fromMs)
    throw new StoreError('conflict', `version ${inForce.version} is already in force from the same time`)
  if (versions.length === 0 && countSites(db, orgId) >= command.sitesMax) return { state: 'over' }
  const version = Math.max(0, ...versions.map((entry) => entry.version)) + 1
  db.query(
    `INSERT INTO robots_version (org_id, site_id, version, from_ms, set_at_ms, set_by, digest, bytes, content)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(orgId, siteId, version, fromMs, now, setBy, digest, Buffer.byteLength(text), compressed(text))
  // A version before all others is the first to be deleted again, so the newest `versionsMax` stay.
  const keptTimes = [...versions.map((entry) => entry.fromMs), fromMs]
    .sort((a, b) => b - a)
    .slice(0, versionsMax)
  db.query('DELETE FROM robots_version WHERE org_id = ? AND site_id = ? AND from_ms < ?').run(
    orgId,
    siteId,
    keptTimes.at(-1)!,
  )
  appendAudit(db, command.audit)
  return { state: 'stored', version }
}

/** In force last first. */
function versionsOf(db: Database, orgId: string, siteId: string): RobotsVersion[] {
  return db
    .query<RobotsVersion, [string, string]>(
      `SELECT ${columns} FROM robots_version WHERE org_id = ? AND site_id = ? ORDER BY from_ms DESC`,
    )
    .all(orgId, siteId)
}

function countSites(db: Database, orgId: string): number {
  const row = db
    .query<{ sites: number }, [string]>(
      'SELECT count(DISTINCT site_id) AS sites FROM robots_version WHERE org_id = ?',
    )
    .get(orgId)
  return row?.sites ?? 0
}

function listRobots({ db }: ReadContext, query: { orgId: string; siteId: string }): RobotsVersion[] {
  return versionsOf(db, query.orgId, query.siteId)
}

function listSites({ db }: ReadContext, orgId: string): RobotsVersion[] {
  return db
    .query<RobotsVersion, [string]>(
      `SELECT ${columns} FROM robots_version AS one
       WHERE org_id = ? AND from_ms = (SELECT max(from_ms) FROM robots_version AS other
         WHERE other.org_id = one.org_id AND other.site_id = one.site_id)
       ORDER BY site_id`,
    )
    .all(orgId)
}

function findRobots(
  { db }: ReadContext,
  { orgId, siteId, version }: { orgId: string; siteId: string; version: number },
): StoredRobots | null {
  const row = db
    .query<RobotsVersion & { content: Uint8Array }, [string, string, number]>(
      `SELECT ${columns}, content FROM robots_version WHERE org_id = ? AND site_id = ? AND version = ?`,
    )
    .get(orgId, siteId, version)
  if (row === null) return null
  const { content, ...versionFields } = row
  return { ...versionFields, text: decompressed(content, `the robots.txt of ${siteId}`) }
}
