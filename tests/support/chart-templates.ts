/**
 * Renders the templates of our Helm chart as Helm does: the part of Go's templates that the chart uses. Anything else
 * throws. `tests/e2e/packages.ts --full` compares it with Go's own engine.
 */
import { createHash } from 'node:crypto'

type Value = unknown
type Scope = { dot: Value; variables: Map<string, Value> }
type Block = (scope: Scope) => string

/** The documents of all templates that are not empty, by file. */
export function renderChart(
  files: Map<string, string>,
  root: { [name: string]: Value },
): Map<string, string> {
  const templates = new Map<string, Block>()
  const parsed = [...files]
    .filter(([path]) => path.startsWith('templates/'))
    .map(([path, text]) => [path, parse(text, templates)] as const)
  const rendered = parsed.map(([path, block]) => {
    return [path, block({ dot: root, variables: new Map([['$', root]]) })] as const
  })
  return new Map(rendered.filter(([path, text]) => !path.endsWith('.tpl') && text.trim() !== ''))
}

/** Text and actions in turn; a hyphen in an action removes the space beside it. */
function tokens(text: string): string[] {
  const parts = text.split(/(\{\{.*?\}\})/s)
  return parts.map((part, index) => {
    if (index % 2 === 1) return part
    const trimmedText = parts[index - 1]?.endsWith('-}}') ? part.trimStart() : part
    return parts[index + 1]?.startsWith('{{-') ? trimmedText.trimEnd() : trimmedText
  })
}

function parse(text: string, templates: Map<string, Block>): Block {
  const tokenList = tokens(text)
  let position = 0
  const block = (): { run: Block; end: string } => {
    const pieces: Block[] = []
    for (;;) {
      const literal = tokenList[position++] ?? ''
      pieces.push(() => literal)
      if (position >= tokenList.length) return { run: joined(pieces), end: '' }
      const action = tokenList[position++]!.replace(/^\{\{-?\s*|\s*-?\}\}$/g, '')
      const [word = ''] = action.split(/\s/)
      if (word === 'end' || word === 'else') return { run: joined(pieces), end: word }
      pieces.push(statement(action, word, block, templates))
    }
  }
  return block().run
}

const joined =
  (pieces: Block[]): Block =>
  (scope) =>
    pieces.map((piece) => piece(scope)).join('')

function statement(
  action: string,
  word: string,
  block: () => { run: Block; end: string },
  templates: Map<string, Block>,
): Block {
  const argument = action.slice(word.length).trim()
  if (word === 'define') {
    templates.set(JSON.parse(argument) as string, block().run)
    return () => ''
  }
  if (word === 'if') {
    const thenBlock = block()
    const otherwise = thenBlock.end === 'else' ? block().run : () => ''
    return (scope) => (isTrue(evaluate(argument, scope, templates)) ? thenBlock.run(scope) : otherwise(scope))
  }
  if (word === 'range') {
    const [, key = '', item = '', list = ''] = /^(\$\w+), (\$\w+) := (.+)$/.exec(argument) ?? []
    const { run } = block()
    return (scope) =>
      Object.entries(evaluate(list, scope, templates) as object)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, value]) => {
          const variables = new Map([...scope.variables, [key, name], [item, value]])
          return run({ dot: value, variables })
        })
        .join('')
  }
  return (scope) => String(evaluate(action, scope, templates) ?? '')
}

const isTrue = (value: Value): boolean =>
  typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value)

/** A pipeline: the value of each part is the last argument of the next one. */
function evaluate(pipeline: string, scope: Scope, templates: Map<string, Block>): Value {
  let value: Value
  for (const [index, part] of pipeline.split(/\s+\|\s+/).entries()) {
    const [first = '', ...operands] = part.match(/"[^"]*"|\S+/g) ?? []
    const values = [
      ...operands.map((operandText) => operand(operandText, scope)),
      ...(index === 0 ? [] : [value]),
    ]
    value = /^[a-z]\w*$/i.test(first) ? call(first, values, templates) : operand(first, scope)
  }
  return value
}

function operand(text: string, { dot, variables }: Scope): Value {
  if (/^["\d]/.test(text)) return JSON.parse(text)
  const [start = '', ...path] = text.split('.')
  const base = start === '' ? dot : variables.get(start)
  if (base === undefined) throw new Error(`chart: unknown operand ${text}`)
  return path
    .filter((name) => name !== '')
    .reduce<Value>((value, name) => {
      if (typeof value !== 'object' || value === null || !(name in value))
        throw new Error(`chart: ${text} is not in the values`)
      return (value as { [name: string]: Value })[name]
    }, base)
}

/** As Go writes JSON. */
function withSortedKeys(_key: string, value: Value): Value {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function call(name: string, values: Value[], templates: Map<string, Block>): Value {
  const [first, second] = values
  switch (name) {
    case 'include': {
      const block = templates.get(String(first))
      if (block === undefined) throw new Error(`chart: no template ${String(first)}`)
      return block({ dot: second, variables: new Map([['$', second]]) })
    }
    case 'quote':
      return JSON.stringify(String(first))
    case 'toJson':
      return JSON.stringify(first, withSortedKeys)
    case 'nindent':
      return `\n${String(second).replace(/^/gm, ' '.repeat(Number(first)))}`
    case 'default':
      return isTrue(second) ? second : first
    case 'trunc':
      return String(second).slice(0, Number(first))
    case 'trimSuffix':
      return String(second).endsWith(String(first)) ? String(second).slice(0, -String(first).length) : second
    case 'sha256sum':
      return createHash('sha256').update(String(first)).digest('hex')
    case 'div':
      return Math.trunc(Number(first) / Number(second))
    case 'or':
      return values.find(isTrue) ?? values.at(-1)
    case 'not':
      return !isTrue(first)
    default:
      throw new Error(`chart: unknown function ${name}`)
  }
}
