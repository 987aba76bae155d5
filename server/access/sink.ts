/** What a reader of logs hands its lines to: the appliance in this process, behind its control socket or over HTTP. */

/** The counts of some lines. lines = stored + deduped + people + excluded + bad. */
export interface LineSums {
  lines: number
  stored: number
  deduped: number
  people: number
  excluded: number // assets of people, other bots and programs, comments, blank lines
  bad: number
}

export function noLines(): LineSums {
  return { lines: 0, stored: 0, deduped: 0, people: 0, excluded: 0, bad: 0 }
}

export function addSums(to: LineSums, addend: LineSums): void {
  for (const name of Object.keys(to) as (keyof LineSums)[]) to[name] += addend[name]
}

/** What a reader says about its log when it asks for a position, also to renew its claim. */
export interface LogStatus {
  path: string
  source: string | null // identity of a file; null before there is one
  behindBytes: number
  problem: string | null
}

export interface LogPosition {
  position: number // 0: nothing of it is stored
  tail: string // hash of the line that ends there
  epoch: string // of the memory that sessions are kept in
  isWarm: boolean // whether that memory knows the running sessions of this file
}

/** Whole lines of a file, each character a byte. */
export interface LogLines {
  source: string
  path: string
  format: string // a name or a format string, not `auto`
  heading: string // the last `#Fields` line before these lines, for formats that have it
  from: number
  to: number
  text: string
  cutTail: string | null // hash of the end of a line above the limit, of which `text` has only the beginning
  epoch: string
}

export interface StoreAnswer {
  /** `behind`: nothing of these lines is stored, because the position is another one. */
  state: 'stored' | 'known' | 'behind'
  position: number
  tail: string
  sums: LineSums
  errors: LineError[] // the first bad lines
}

/** `line` counts from 1 in the lines that were sent. */
export interface LineError {
  line: number
  message: string
}

export interface Sink {
  /** How long a claim may outlive its reader. Without it the appliance knows which readers run. */
  claimMs?: number
  position(status: LogStatus): Promise<LogPosition>
  store(lines: LogLines): Promise<StoreAnswer>
  /** Reads lines that are stored already, so that their sessions go on. */
  warm(lines: LogLines): Promise<void>
}
