/** Site memory: the record of a pushed snapshot, its score, and its form in responses. */
import { canonicalText } from '../../text/json-scan.ts'
import { sha256Hex } from '../../ids.ts'
import { isoTime } from '../../clock.ts'
import { withMember } from './record.ts'
import type { MemoryPush, MemoryVersion, StoredMemory } from '../../../db/contract/registry.ts'

/** `json` is the snapshot with its numbers as they were spelled; a missing score is computed. */
export function memoryRecord(
  snapshot: { [member: string]: unknown },
  sent: number | null,
  json: string,
): Pick<MemoryPush, 'digest' | 'json' | 'score' | 'computed'> {
  const score = sent ?? computedScore(snapshot)
  return { digest: sha256Hex(canonicalText([snapshot, score])), json, score, computed: sent === null }
}

/** The score of a snapshot without one: the share of its six parts that are filled in (contract §5). */
interface Members {
  [member: string]: unknown
}

/** 0 to 100, rounded. */
export function computedScore(snapshot: Members): number {
  const { siteMap, workflows, policies, uiGuidance, pageContexts } = snapshot
  const map = typeof siteMap === 'object' && siteMap !== null ? (siteMap as Members) : {}
  const parts = [map['pages'], map['navigation'], workflows, policies, uiGuidance, pageContexts]
  return Math.round((100 * parts.filter(isFilled).length) / parts.length)
}

function isFilled(part: unknown): boolean {
  if (typeof part === 'string') return part.trim() !== ''
  if (typeof part === 'object' && part !== null) return Object.keys(part).length > 0
  return typeof part === 'number' || part === true
}

/** JSON text; the snapshot in it is exactly as it was sent. */
export function memoryView(memory: StoredMemory): string {
  const { siteId, firstAtMs, json } = memory
  return withMember({ siteId, firstSeenAt: isoTime(firstAtMs), ...versionView(memory) }, 'snapshot', json)
}

export function versionView({ version, atMs, score, computed, bytes }: MemoryVersion) {
  return { version, at: isoTime(atMs), score, scoreComputed: computed, bytes }
}

export type MemoryVersionView = ReturnType<typeof versionView>
