/** The form of what help says about a verb. */

export interface VerbText {
  summary: string
  usage: string // without the program's name
  about: string[]
  examples: string[]
}
