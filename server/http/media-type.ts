/** Content negotiation: the media type of a request's body, and the one to respond with. */
import { AppError } from '../errors.ts'

/** The media type of the body, one of `known`; without a header the first of them (contract §1). Throws 415. */
export function mediaType<Known extends string>(
  header: string | null,
  known: readonly [Known, ...Known[]],
): Known {
  if (header === null) return known[0]
  for (const type of known) if (header === type) return type
  const [name = '', ...parameters] = header.split(';')
  const lower = name.trim().toLowerCase()
  if (lower === '' && parameters.length === 0) return known[0]
  const found = known.find((type) => type === lower)
  if (found === undefined) {
    throw new AppError('unsupported_media_type', `The content-type must be ${known.join(' or ')}.`, {
      hint: `Send the header "content-type: ${known[0]}".`,
    })
  }
  for (const parameter of parameters) {
    const [label = '', value = ''] = parameter.split('=')
    if (label.trim().toLowerCase() !== 'charset') continue
    const charset = value.trim().replace(/^"(.*)"$/, '$1')
    if (!/^utf-?8$/i.test(charset)) {
      throw new AppError('unsupported_media_type', 'The charset of the body must be utf-8.')
    }
  }
  return found
}

/**
 * The offered type that the `accept` header prefers; the first one on a tie or without a header. Throws 406 when the
 * client accepts none of them.
 */
export function acceptedType<const Offered extends string>(
  header: string | null,
  offered: readonly [Offered, ...Offered[]],
): Offered {
  if (header === null || header.trim() === '') return offered[0]
  const ranges = header.split(',').map(readRange)
  let best: { type: Offered; quality: number } | null = null
  for (const type of offered) {
    const quality = qualityOf(type, ranges)
    if (quality > 0 && (best === null || quality > best.quality)) best = { type, quality }
  }
  if (best === null) throw new AppError('not_acceptable', `Available media types: ${offered.join(', ')}.`)
  return best.type
}

interface Range {
  type: string
  quality: number
}

function readRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const given = parameters.find((parameter) => parameter.startsWith('q='))
  const quality = given === undefined ? 1 : Number(given.slice(2))
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
}

/** Quality by the most specific range that matches; 0 when none does. */
function qualityOf(type: string, ranges: Range[]): number {
  for (const name of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const range = ranges.find((one) => one.type === name)
    if (range !== undefined) return range.quality
  }
  return 0
}
