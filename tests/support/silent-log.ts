/** A log that writes nothing. */
import type { Log } from '../../server/log.ts'

export const silent: Log = {
  debug: () => {},
  isDebug: () => false,
  info: () => {},
  warn: () => {},
  error: () => {},
  setLevel: () => 'info',
  close: async () => {},
}
