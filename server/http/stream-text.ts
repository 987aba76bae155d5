/** Answers with text as it is made: the next part is only asked for when the receiver has taken the last one. */

const encoder = new TextEncoder()

export interface StreamedText {
  parts: AsyncGenerator<string | Uint8Array>
  stallMs: number // a receiver that takes nothing for so long is cut off
  /** Called once, however it ends; `failed` is what the generator threw or the stall. */
  ended(failed: unknown): void
}

/**
 * The body of a streamed answer. When making it fails, the connection is cut without a proper end, so that no receiver
 * takes a part for the whole.
 */
export function streamText({ parts, stallMs, ended }: StreamedText): ReadableStream<Uint8Array> {
  let stall: Timer | null = null
  let isOver = false
  const finish = (failed: unknown): void => {
    if (stall !== null) clearTimeout(stall)
    if (isOver) return
    isOver = true
    ended(failed)
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (stall !== null) clearTimeout(stall)
        try {
          const { done, value } = await parts.next()
          if (isOver) return
          if (done) {
            finish(null)
            controller.close()
            return
          }
          controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
          stall = setTimeout(() => {
            const error = new Error(`the receiver took nothing for ${stallMs} ms`)
            finish(error)
            controller.error(error)
            void parts.return(undefined)
          }, stallMs)
        } catch (error) {
          finish(error)
          controller.error(error)
        }
      },
      async cancel() {
        finish(null)
        await parts.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}
