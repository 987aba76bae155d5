/** Untrusted text, such as from an event: cut in the middle, with visible hidden characters and isolated direction. */
import './text.css'

interface TextProps {
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

/** Untrusted text: hidden and reordering characters are made visible, long names are cut in the middle. */
interface TextSegment {
  text: string
  hidden: boolean // an invisible character, as its code point "U+202E"
}

/**
 * Matches controls, direction marks, zero-width and filler characters, and tag characters. The emoji joiner and the
 * joiners of Persian and Indic scripts are not matched after a character they can join.
 */
const hiddenCharacter = new RegExp(
  [
    String.raw`[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f]`,
    String.raw`[\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]`,
    String.raw`(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]|(?!\p{Script=Latin})[\p{L}\p{M}])[\u200c\u200d]`,
  ].join('|'),
  'gu',
)

const names: { [codePoint: string]: string } = {
  'U+0000': 'null',
  'U+0009': 'tab',
  'U+000A': 'line feed',
  'U+000D': 'carriage return',
  'U+001B': 'escape',
  'U+00AD': 'soft hyphen',
  'U+200B': 'zero-width space',
  'U+200C': 'zero-width non-joiner',
  'U+200D': 'zero-width joiner',
  'U+200E': 'left-to-right mark',
  'U+200F': 'right-to-left mark',
  'U+202A': 'left-to-right embedding',
  'U+202B': 'right-to-left embedding',
  'U+202C': 'end of direction',
  'U+202D': 'left-to-right override',
  'U+202E': 'right-to-left override',
  'U+2066': 'left-to-right isolate',
  'U+2067': 'right-to-left isolate',
  'U+2068': 'first-strong isolate',
  'U+2069': 'end of isolate',
  'U+FEFF': 'byte order mark',
}

/** "U+202E" */
function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

/** The name of a hidden character for its tooltip: "Hidden character: right-to-left override". */
export function hiddenName(codePoint: string): string {
  const name = names[codePoint]
  return name === undefined ? 'Hidden character' : `Hidden character: ${name}`
}

/** Splits a text into visible parts and hidden characters. */
export function segments(text: string): TextSegment[] {
  const segmentList: TextSegment[] = []
  let from = 0
  for (const match of text.matchAll(hiddenCharacter)) {
    if (match.index > from) segmentList.push({ text: text.slice(from, match.index), hidden: false })
    segmentList.push({ text: codePointName(match[0]), hidden: true })
    from = match.index + match[0].length
  }
  if (from < text.length) segmentList.push({ text: text.slice(from), hidden: false })
  return segmentList
}

/** The same as plain text, for tooltips and labels: "pay\u202Elap" → "pay[U+202E]lap". */
export function visibleText(text: string): string {
  return segments(text)
    .map((segment) => (segment.hidden ? `[${segment.text}]` : segment.text))
    .join('')
}

/** Escapes the hidden characters of JSON text as \u sequences. The JSON value stays the same. */
export function escapeHidden(jsonText: string): string {
  return jsonText.replace(hiddenCharacter, (character) => {
    if (character === '\n') return character
    let escaped = ''
    for (let i = 0; i < character.length; i++) {
      escaped += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
    }
    return escaped
  })
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * Truncates to `max` characters. Longer texts lose their middle, because names differ at the start and the end.
 * Characters with more than eight combining marks are cut, because a single one could cover the page.
 */
export function middleCut(text: string, max: number): string {
  if (text.length <= max && !/\p{M}{4}/u.test(text)) return text
  const signs = Array.from(graphemes.segment(text.slice(0, 4_000)), (sign) => sign.segment.slice(0, 16))
  if (text.length <= 4_000 && signs.length <= max) return signs.join('')
  const head = Math.ceil((max - 1) * 0.6)
  const tail = max - 1 - head
  const end = Array.from(graphemes.segment(text.slice(-400)), (sign) => sign.segment.slice(0, 16))
  return `${signs.slice(0, head).join('')}…${tail > 0 ? end.slice(-tail).join('') : ''}`
}
