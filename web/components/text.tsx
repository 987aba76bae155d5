/** Text from an event: cut in the middle when long, hidden characters shown, its direction kept to itself. */
import './text.css'
import { hiddenName, middleCut, segments, visibleText } from '../text/text.ts'

export interface TextProps {
  value: string
  max?: number // in signs; without it the whole text is shown
  mono?: boolean
  multiline?: boolean // line feeds break the line, as in a stack trace
}

/** The hover has the whole, up to 1,000 characters. */
export function Text({ value, max, mono, multiline }: TextProps) {
  const shown = max === undefined ? value : middleCut(value, max)
  const title = shown === value ? undefined : visibleText(value.slice(0, 1_000))
  return (
    <bdi class={`text${mono ? ' mono' : ''}${multiline ? ' multiline' : ''}`} title={title}>
      {segments(shown).map((segment) =>
        multiline && segment.text === 'U+000A' && segment.hidden ? (
          '\n'
        ) : segment.hidden ? (
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
