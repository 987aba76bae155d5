/** The position in a live stream, which a page of events returns and the stream resumes after. */
import type { Cipher } from '../../system/encryption.ts'

export const livePurpose = 'live-position'

/** The opaque position after which a stream resumes. */
export function livePosition(cursorCipher: Cipher, orgId: string, seq: number): string {
  return cursorCipher.encrypt(livePurpose, [orgId, seq])
}
