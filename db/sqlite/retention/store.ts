/** The retention part of the store, each verb sent to the thread that does it. */
import type { RetentionStore } from '../../contract/retention.ts'
import type { Threads } from '../threads/threads.ts'

export function retentionStore({
  read,
  write,
  truncateLog,
  dropReserve,
}: Pick<Threads, 'read' | 'write' | 'truncateLog' | 'dropReserve'>): RetentionStore {
  return {
    setting: (orgId) => read('retention.setting', orgId),
    set: (command) => write('retention.set', command),
    eventBytes: (orgId) => read('retention.eventBytes', orgId),
    cutoff: (query) => read('retention.cutoff', query),
    dropRollups: (command) => write('retention.dropRollups', command),
    release: () => write('retention.release', null),
    truncateLog,
    dropReserve,
    firstHour: (orgId) => read('retention.firstHour', orgId),
    recounted: (orgId) => read('retention.recounted', orgId),
    noteRecount: (command) => write('retention.noteRecount', command),
  }
}
