/** How site memory looks in answers: JSON text, the snapshot in it as it was sent. */
import type { MemoryVersion, StoredMemory } from '../../../db/contract/registry.ts'
import { isoTime } from '../../clock.ts'
import { withMember } from '../tools/view.ts'

export function memoryView(memory: StoredMemory): string {
  const { siteId, firstAtMs, json } = memory
  return withMember({ siteId, firstSeenAt: isoTime(firstAtMs), ...versionView(memory) }, 'snapshot', json)
}

export function versionView({ version, atMs, score, computed, bytes }: MemoryVersion) {
  return { version, at: isoTime(atMs), score, scoreComputed: computed, bytes }
}
