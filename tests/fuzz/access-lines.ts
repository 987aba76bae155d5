/**
 * `bun tests/fuzz/access-lines.ts --full`: a million generated lines in the combined format, read by position, by the
 * steps of the format, and by a parser of another kind.
 */
import { formatNamed } from '../../server/access/formats.ts'
import type { LogRequest } from '../../server/access/log-request.ts'
import { randomOf } from './otlp-mutations.ts'

/** The other way to read a combined log: character by character, without steps. */
function referenceParser(line: string): LogRequest {
  let position = 0
  const quotedText = (): string => {
    let value = ''
    position = line.indexOf('"', position) + 1
    while (line[position] !== '"') {
      if (line[position] === '\\' && line[position + 1] === 'x') {
        value += String.fromCharCode(Number.parseInt(line.slice(position + 2, position + 4), 16))
        position += 4
      } else value += line[position++]
    }
    position++
    return Buffer.from(value, 'latin1').toString()
  }
  const address = line.split(' ')[0]!
  const open = line.indexOf('[')
  const [date = '', hour = '', minute = '', second = ''] = line
    .slice(open + 1, line.indexOf(']'))
    .split(/[: ]/)
  const zone = line.slice(line.indexOf(']') - 5, line.indexOf(']'))
  const month = 'JanFebMarAprMayJunJulAugSepOctNovDec'.indexOf(date.slice(3, 6)) / 3
  const offset = (Number(zone.slice(0, 3)) * 60 + Number(zone[0] + zone.slice(3))) * 60_000
  const day = [Number(date.slice(7)), month, Number(date.slice(0, 2))] as const
  const utc = Date.UTC(...day, Number(hour), Number(minute), Number(second))
  position = line.indexOf(']')
  const [method = '', path = '', protocol = ''] = quotedText().split(' ')
  const [status = '', bytes = ''] = line.slice(position + 1).split(' ')
  const referrer = quotedText()
  const userAgent = quotedText()
  return {
    timeMs: utc - offset,
    address,
    method,
    path,
    protocol,
    status: Number(status),
    peerName: null,
    forwarded: null,
    host: null,
    durationMs: null,
    bytes: bytes === '-' ? null : Number(bytes),
    referrer: referrer === '-' ? null : referrer,
    userAgent: userAgent === '-' ? null : userAgent,
  }
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const plain = ['a', 'Z', '0', ' ', ' (', ';', '[', ']', '%20', "'", '+http://x', '?', '=', '#', '.js']
const odd = ['\\x22', '\\x5C', '\\xC3\\xA4', 'é']

const bytesOf = (text: string): string => Buffer.from(text).toString('latin1')
const pad = (value: number): string => String(value).padStart(2, '0')

/** One line in three has an escape or a byte above 127. */
function lineMaker(random: (limit: number) => number): () => string {
  const pick = <T>(values: readonly T[]): T => values[random(values.length)]!
  const text = (pieces: readonly string[]): string =>
    Array.from({ length: random(20) }, () => pick(pieces)).join('')
  const texts = Array.from({ length: 3_000 }, (_, index) =>
    text(index % 8 === 0 ? [...plain, ...odd] : plain),
  )
  return () => {
    const ipv4 = `${random(256)}.${random(256)}.0.${random(256)}`
    const address = random(2) === 0 ? ipv4 : `2001:db8::${random(65_536).toString(16)}`
    const date = `${pad(1 + random(28))}/${pick(months)}/${1971 + random(200)}`
    const time = `${date}:${pad(random(24))}:${pad(random(60))}:${pad(random(60))}`
    const zone = `${pick(['+', '-'])}${pad(random(15))}${pick(['00', '30', '45'])}`
    const path = pick(texts).replaceAll(' ', '')
    const request = `${pick(['GET', 'POST', 'HEAD'])} /${path} HTTP/${pick(['1.0', '1.1', '2.0'])}`
    const size = pick(['-', String(random(1e9))])
    const referrer = pick(['-', `https://x.example/${pick(texts)}`])
    const start = `${address} - - [${time} ${zone}] "${request}" ${100 + random(500)} ${size}`
    return bytesOf(`${start} "${referrer}" "${pick(texts) || '-'}"`)
  }
}

const linesOfBlock = 1_000

/** Throws at the first line that is read differently. Returns how many of the lines were read by position. */
export function compareLines(lines: number, seed: number): number {
  const makeLine = lineMaker(randomOf(seed))
  const parse = formatNamed('combined').open()
  const byPosition = parse.plain!
  let plainLines = 0
  for (let lineCount = 0; lineCount < lines; lineCount += linesOfBlock) {
    const block = Array.from({ length: Math.min(linesOfBlock, lines - lineCount) }, makeLine)
    const text = block.join('\n')
    let start = 0
    for (const line of block) {
      const end = start + line.length
      const expected = referenceParser(line)
      const isPlain = byPosition.read(text, start, end)
      if (isPlain) plainLines++
      const read = isPlain ? [byPosition.request(), parse(text, start, end)] : [parse(text, start, end)]
      for (const parsedLine of read)
        if (!Bun.deepEquals(parsedLine, expected))
          throw new Error(`${line}\n${JSON.stringify(parsedLine)}\n${JSON.stringify(expected)}`)
      start = end + 1
    }
  }
  return plainLines
}

if (import.meta.main && process.argv.includes('--full')) {
  const lines = 1_000_000
  const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
  const plainLines = compareLines(lines, seed)
  console.log(`seed ${seed}: ${lines} lines are read alike, ${plainLines} of them by position`)
}
