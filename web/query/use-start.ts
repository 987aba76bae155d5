/** Begins what a page shows, and begins anew when it is asked for something else. */
import { type ReadonlySignal, useSignalEffect } from '@preact/signals'
import { useMemo } from 'preact/hooks'

/** Begun before the first drawing, not after it: what is remembered stands in the first frame already (`seen.ts`). */
export function useStart(asked: ReadonlySignal<string>, start: (asked: string) => void): void {
  const begun = useMemo(() => {
    start(asked.peek())
    return { asked: asked.peek() }
  }, [])
  useSignalEffect(() => {
    if (asked.value === begun.asked) return
    begun.asked = asked.value
    start(asked.value)
  })
}
