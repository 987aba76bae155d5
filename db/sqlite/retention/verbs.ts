/** The verbs of retention, re-counts and released room, by the names under which they travel. */
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { noteRecount, readRecounted, readSetting, writeSetting } from './settings.ts'
import { releasePages } from './release.ts'

export const retentionWriteVerbs = {
  'retention.set': writeSetting,
  'retention.dropRollups': ({ events }: WriteContext, command: { orgId: string; beforeMs: number }) =>
    events.dropRollups(command),
  'retention.release': releasePages,
  'retention.noteRecount': noteRecount,
}

export const retentionReadVerbs = {
  'retention.setting': readSetting,
  'retention.recounted': readRecounted,
  'retention.eventBytes': ({ events }: ReadContext, orgId: string) => events.eventBytes(orgId),
  'retention.cutoff': ({ events }: ReadContext, query: { orgId: string; bytesMax: number }) =>
    events.cutoff(query),
  'retention.firstHour': ({ events }: ReadContext, orgId: string) => events.firstHour(orgId),
}
