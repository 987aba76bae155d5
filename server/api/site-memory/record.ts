/** Turns a pushed snapshot into the record that the store compares and keeps. */
import type { MemoryPush } from '../../../db/contract/registry.ts'
import { canonicalText } from '../../text/canonical.ts'
import { sha256Hex } from '../../ids.ts'
import { computedScore } from './score.ts'

/** `json` is the snapshot with its numbers as they were spelled; without a score one is computed. */
export function memoryRecord(
  snapshot: { [member: string]: unknown },
  sent: number | null,
  json: string,
): Pick<MemoryPush, 'digest' | 'json' | 'score' | 'computed'> {
  const score = sent ?? computedScore(snapshot)
  return { digest: sha256Hex(canonicalText([snapshot, score])), json, score, computed: sent === null }
}
