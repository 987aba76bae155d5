/** What differs between runtimes. It is handed in, so that no import ties the edge build to Node.js. */

export type Bytes = Uint8Array<ArrayBuffer>

export interface Platform {
  /** Milliseconds since 1970 UTC. */
  nowMs(): number
  /** Whether this is a browser's page, which has one visitor. */
  isPage: boolean
  uuid(): string
  /** Lower-case hexadecimal SHA-256 of the text's UTF-8. */
  sha256(text: string): string
  /** Length of `text` in UTF-8. */
  byteLength(text: string): number
  gzip(bytes: Bytes): Promise<Bytes>
  /**
   * Null where there are no files. Throws when the folder cannot be written or another process holds the spool;
   * `onFailure` hears, at most once, of a disk that fails later. Afterwards the spool takes nothing any more.
   */
  openSpool: ((path: string, onFailure: (error: unknown) => void) => Spool) | null
  /** Runs `last` when the process has nothing left to do. Returns a function that takes it back. */
  onIdleExit(last: () => Promise<unknown>): () => void
}

/** Events on disk until the appliance has them, in the order they came. */
export interface Spool {
  /** Left by an earlier run, oldest first; the caller queues them again without appending. */
  pending: string[]
  /** Written before the next turn of the event loop, so only death in the middle of a turn loses its events. */
  append(text: string): void
  /** The oldest `count` events, together `bytes` long in UTF-8, need not be kept any longer. */
  forget(count: number, bytes: number): void
  close(): void
}
