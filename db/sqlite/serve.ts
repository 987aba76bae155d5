/** The worker's side of a port: every message is answered once, in the order of arrival. */
import { storeError } from './failure.ts'
import { failureOf, packAnswer, unpackRequest, type Answer } from './protocol.ts'

declare const self: Worker

/** `handle` runs one request to its end before the next is looked at. */
export function serve(handle: (verb: string, command: unknown, parts: string[]) => unknown): void {
  self.onmessage = ({ data }: MessageEvent<string>) => {
    const { request, parts } = unpackRequest(data)
    const [id, verb, command] = request
    let answer: string
    try {
      answer = packAnswer(id, verb, handle(verb, command, parts))
    } catch (error) {
      answer = JSON.stringify([id, null, failureOf(storeError(error, verb))] satisfies Answer)
    }
    self.postMessage(answer)
  }
}
