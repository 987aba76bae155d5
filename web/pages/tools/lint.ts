/** Findings in a tool's descriptor: its name, its description, hidden or injected text. */
import type { Json, JsonObject } from '../../api/registry-api.ts'
import { segments } from '../../components/text.tsx'

type FindingCode = 'name' | 'description' | 'instructions' | 'hidden' | 'read_only'

export interface Finding {
  code: FindingCode
  message: string // a sentence
  where: string // field of the descriptor, as a JSON Pointer
}

const nameRule = /^[A-Za-z0-9_.-]{1,128}$/

/** Phrases that instruct an agent beyond using the tool. They are indications, not proof. */
const instructionSigns: { pattern: RegExp; message: string }[] = [
  {
    pattern:
      /\b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:previous|prior|above|earlier|other|all|system)\b[^.]{0,40}\b(?:instructions?|prompts?|rules?|messages?|guidelines?)\b/i,
    message: 'tells the agent to ignore its instructions',
  },
  {
    pattern:
      /\b(?:do not|don't|never|without)\b[^.]{0,30}\b(?:tell|telling|mention|mentioning|inform|informing|reveal|revealing|notify|notifying)\b[^.]{0,30}\b(?:user|human|person|anyone)\b/i,
    message: 'asks the agent to hide something from its user',
  },
  {
    pattern: /<\/?(?:system|important|instructions?|assistant|secret)\b[^>]*>/i,
    message: 'has a tag that imitates a prompt',
  },
  {
    pattern: /\b(?:system prompt|you are now|new instructions?:)/i,
    message: 'addresses the agent as its operator',
  },
  {
    pattern: /\b(?:before|instead of|after)\b[^.]{0,20}\busing\b[^.]{0,20}\bany other tools?\b/i,
    message: 'steers the use of other tools',
  },
  { pattern: /<!--/, message: 'has a hidden comment' },
]

const words = (text: string): Set<string> => new Set(text.split(' '))

const writingVerbs = words(
  'add append approve archive assign buy cancel clear close create delete disable dismiss drop edit enable execute ' +
    'insert invite merge modify overwrite pay publish purchase put refund remove rename replace revoke send set submit ' +
    'subscribe trigger unassign unblock unlock unstar unsubscribe update upload upsert write',
)
/** These verbs are also nouns ("read the post"), so they count only at the start of a name. */
const verbsOrThings = words(
  'block book charge checkout commit fork lock move order post push reply request reset run star transfer',
)

/** "cart.addItem" → cart, add, item */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
}

export function writingWord(name: string): string | null {
  const firstWord = wordsOf(name.split('.').at(-1) ?? '')[0] ?? ''
  if (verbsOrThings.has(firstWord)) return firstWord
  return wordsOf(name).find((word) => writingVerbs.has(word)) ?? null
}

const depthMax = 12
const textsMax = 2_000

/** Every text of the descriptor with its path, field names included, because an agent reads them all. */
function* texts(
  value: Json | undefined,
  place: string,
  depth: number,
): Generator<{ text: string; where: string }> {
  if (typeof value === 'string') yield { text: value, where: place }
  if (typeof value !== 'object' || value === null || depth >= depthMax) return
  for (const [name, inner] of Object.entries(value)) {
    const textPath = `${place}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (!Array.isArray(value)) yield { text: name, where: textPath }
    yield* texts(inner, textPath, depth + 1)
  }
}

const layout = new Set(['U+0009', 'U+000A', 'U+000D'])

function hiddenCharacters(text: string): string[] {
  const hidden = segments(text).filter((segment) => segment.hidden && !layout.has(segment.text))
  return [...new Set(hidden.map((segment) => segment.text))]
}

/** Findings by severity. A finding that occurs in several places is reported once, at the first. */
export function lint(name: string, tool: JsonObject): Finding[] {
  const findings = new Map<string, Finding>()
  const add = (code: FindingCode, message: string, textPath: string): void => {
    if (!findings.has(code + message)) findings.set(code + message, { code, message, where: textPath })
  }
  let looked = 0
  for (const { text, where: textPath } of texts(tool, '', 0)) {
    if ((looked += 1) > textsMax) break
    for (const { pattern, message } of instructionSigns)
      if (pattern.test(text)) add('instructions', message, textPath)
    const hidden = hiddenCharacters(text)
    if (hidden.length > 0) add('hidden', `has hidden characters: ${hidden.slice(0, 5).join(', ')}`, textPath)
  }
  if (!nameRule.test(name))
    add(
      'name',
      'has a name that agents may reject; use 1 to 128 letters, digits, dots, dashes or underscores',
      '/name',
    )
  const description = tool['description']
  if (typeof description !== 'string' || description.trim() === '')
    add('description', 'has no description, so an agent can only guess what it does', '/description')
  const hints = tool['annotations']
  const word = writingWord(name)
  const readOnly =
    typeof hints === 'object' && hints !== null && !Array.isArray(hints) && hints['readOnlyHint'] === true
  if (readOnly && word !== null)
    add('read_only', `claims to be read-only, but its name contains “${word}”`, '/annotations/readOnlyHint')
  return [...findings.values()]
}

export const findingNames: { [code in FindingCode]: string } = {
  instructions: 'Instructions in text',
  hidden: 'Hidden text',
  name: 'Name',
  description: 'No description',
  read_only: 'Read-only hint',
}
