/** Text from an event: cut in the middle when long, hidden characters shown, its direction kept to itself. */
import './text.css'
import { hiddenName, middleCut, segments, visibleText } from '../text.ts'

/** `max` is in signs; without it the whole text is shown. The hover has the whole, up to 1,000 characters. */
export function Text(props: { value: string; max?: number; mono?: boolean }) {
  const { value, max, mono } = props
  const shown = max === undefined ? value : middleCut(value, max)
  const title = shown === value ? undefined : visibleText(value.slice(0, 1_000))
  return (
    <bdi class={mono ? 'text mono' : 'text'} title={title}>
      {segments(shown).map((segment) =>
        segment.hidden ? (
          <span class="hidden-character" title={hiddenName(segment.text)}>
            {segment.text}
          </span>
        ) : (
          segment.text
        ),
      )}
    </bdi>
  )
}
