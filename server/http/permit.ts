/** Ends what runs for long, such as exports and live streams, soon after its key or sign-in lost the right to it. */

/** Whether whoever began a request would still be let in. */
export type Permit = () => Promise<boolean>

/** Twice this, and the second in which a key is cached on another node, stay below 5 s. */
export const permitCheckMs = 1_500

/** The error of a stream that was cut. */
export const permitLost = new Error('the key or the sign-in lost the right to it')

/**
 * Asks every `permitCheckMs` and calls `lost` once when the right is gone. Returns the function that ends this. A check
 * that fails is repeated: without the store the stream has nothing to send either.
 */
export function watchPermit(permit: Permit, lost: () => void): () => void {
  let isOver = false
  const timer = setInterval(() => {
    permit().then(
      (holds) => {
        if (holds || isOver) return
        end()
        lost()
      },
      () => undefined,
    )
  }, permitCheckMs)
  timer.unref()
  const end = () => {
    isOver = true
    clearInterval(timer)
  }
  return end
}
