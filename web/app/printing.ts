/** Whether the page goes to paper now: then tables show all their rows, in ink that suits white. */
import { signal } from '@preact/signals'

export const printing = signal(false)

/** Both ways are heard: the browser's own printing, and a view of the page as it would print. */
export function watchPrinting(): void {
  const paper = window.matchMedia('print')
  paper.addEventListener('change', () => (printing.value = paper.matches))
  window.addEventListener('beforeprint', () => (printing.value = true))
  window.addEventListener('afterprint', () => (printing.value = paper.matches))
}
