/** JSON texts as they lie in a column: UTF-8, zstd. */
import { StoreError } from '../../contract/errors.ts'

const decoder = new TextDecoder()

export function compressed(json: string): Uint8Array {
  return Bun.zstdCompressSync(json)
}

/** `what` names the thing in the error of a database that lost it. */
export function decompressed(blob: Uint8Array | undefined, what: string): string {
  if (blob === undefined) throw new StoreError('corrupt', `the text of ${what} is missing`)
  try {
    return decoder.decode(Bun.zstdDecompressSync(blob))
  } catch {
    throw new StoreError('corrupt', `the text of ${what} cannot be read`)
  }
}
