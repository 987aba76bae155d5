/** The interface of runtimes. It is passed in, so that the edge build does not import Node.js modules. */

export type Bytes = Uint8Array<ArrayBuffer>

export interface Platform {
  /** Milliseconds since 1970 UTC. */
  nowMs(): number
  /** True in a page, which has one visitor. */
  isPage: boolean
  uuid(): string
  /** SHA-256 of the UTF-8 bytes, in lower-case hex. */
  sha256(text: string): string
  /** Length of `text` in UTF-8. */
  byteLength(text: string): number
  gzip(bytes: Bytes): Promise<Bytes>
  /**
   * Null without a file system. Throws when the folder is not writable or another process uses the spool. `onFailure`
   * is called at most once, when a write fails later; the spool is then closed.
   */
  openSpool: ((path: string, onFailure: (error: unknown) => void) => Spool) | null
  /** Runs `last` when the process becomes idle. Returns a function that cancels this. */
  onIdleExit(last: () => Promise<unknown>): () => void
}

/** Events on disk until the appliance acknowledges them, in order. */
export interface Spool {
  /** Events of an earlier run, oldest first. The caller queues them without appending them again. */
  /** Lines of earlier processes that were no event, and were dropped. */
  readonly damaged: number
  pending: string[]
  /** Written before the next event-loop tick, so a crash loses at most the events of one tick. */
  append(text: string): void
  /** Removes the oldest `count` events, which have `bytes` bytes in UTF-8. */
  forget(count: number, bytes: number): void
  close(): void
}
