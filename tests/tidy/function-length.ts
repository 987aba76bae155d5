/** No function is longer than a screen. Reads the formatter's indentation, which is as good as a parser here. */
import { blank, type Finding, isCode, type Source } from './source.ts'

const functionLinesMax = 70

const opensFunction = [
  /\bfunction\b.*[({]$/, // function name(  or  function name() {
  /=>( [({[]|)$/, // arrow with a body on the next lines
  /^\s*(?:(?:public|private|static|async|get|set|override) )*[\w$[\].#]+(?:<.*>)?\(.*\{$/, // method() {
  /=> .*[({[]$/, // arrow whose expression goes on
]
/** Blocks that look like a method, and groups of tests, which may be long because they are lists. */
const notFunctions =
  /^\s*(?:\} )?(?:else )?(?:if|for|while|switch|catch|with)\b|^\s*(?:describe\b|class\b|interface\b)/

/** Works on text as the formatter leaves it: a block ends at the next line with its own indentation that closes it. */
export function functionLength({ path, text }: Source): Finding[] {
  if (!isCode(path)) return []
  const lines = blank(text, { strings: true }).split('\n')
  return lines.flatMap((line, index) => {
    if (notFunctions.test(line) || !opensFunction.some((pattern) => pattern.test(line.trimEnd()))) return []
    const length = endOf(lines, index) - index + 1
    if (length <= functionLinesMax) return []
    const message = `a function of ${length} lines, ${functionLinesMax} allowed`
    return [{ rule: 'function-length', path, line: index + 1, message }]
  })
}

function endOf(lines: string[], start: number): number {
  const depth = indentation(lines[start] ?? '')
  for (let at = start + 1; at < lines.length; at++) {
    const line = lines[at] ?? ''
    if (line.trim() === '' || indentation(line) > depth) continue
    // `): Promise<void> {` closes the parameters and opens the body: the function goes on.
    if (indentation(line) === depth && /^\s*[)\]}].*[({[]$/.test(line.trimEnd())) continue
    return indentation(line) === depth && /^\s*[)\]}]/.test(line) ? at : at - 1
  }
  return lines.length - 1
}

function indentation(line: string): number {
  return line.length - line.trimStart().length
}
