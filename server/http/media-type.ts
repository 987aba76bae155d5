/** Reads the content-type of a request: which of our media types it is, and that its text is UTF-8. */
import { AppError } from '../errors.ts'

/** The media type the body has, one of `known`; a missing header means the first of them (contract §1). */
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
