/** Untrusted text, such as from an event: truncated in the middle, hidden characters visible, direction isolated. */
import './text.css'
import { hiddenName, middleCut, segments, visibleText } from '../text/text.ts'

export interface TextProps {
  value: string
  max?: number // in characters; default: the whole text
  mono?: boolean
  multiline?: boolean // render line feeds as line breaks, as in a stack trace
}

/** The tooltip has up to 1,000 characters. */
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
