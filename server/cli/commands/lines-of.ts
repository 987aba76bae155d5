/** Reads a file or standard input line by line, in bounded memory. */
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'

/**
 * Lines end with LF and nothing else: JSON may hold other characters that end a line elsewhere (U+2028). `-` is
 * standard input. Throws when it cannot be read, is not UTF-8, or has a line longer than a request may be.
 */
export async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const source = path === '-' ? Bun.stdin : Bun.file(path)
  let rest = ''
  try {
    for await (const bytes of source.stream()) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
      if (rest.length > limits.bodyBytesMax) throw new Error('a line of it is too long')
    }
    rest += decoder.decode()
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8' : error instanceof Error ? error.message : ''
    throw new AppError('not_found', `${path} cannot be read: ${why}`)
  }
  if (rest !== '') yield rest
}
