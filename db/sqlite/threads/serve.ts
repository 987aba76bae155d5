/** The worker's side of a port: every message is answered once, in the order of arrival. */
import { storeError } from '../file/failure.ts'
import { failureOf, packAnswer, unpackRequest, type Answer } from './protocol.ts'

declare const self: Worker

/** `handle` runs one request to its end before the next is looked at, unless it answers with a promise. */
export function serve(handle: (verb: string, command: unknown, parts: string[]) => unknown): void {
  self.onmessage = ({ data }: MessageEvent<string>) => {
    const { request, parts } = unpackRequest(data)
    const [id, verb, command] = request
    const answer = (result: unknown) => self.postMessage(packAnswer(id, verb, result))
    const refuse = (error: unknown) =>
      self.postMessage(JSON.stringify([id, null, failureOf(storeError(error, verb))] satisfies Answer))
    try {
      const result = handle(verb, command, parts)
      if (result instanceof Promise) void result.then(answer).catch(refuse)
      else answer(result)
    } catch (error) {
      refuse(error)
    }
  }
}
