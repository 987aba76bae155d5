/** Validates email addresses of accounts: strict enough to catch typing errors, not a parser of RFC 5322. */
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'

const form = /^[^\s@,;:<>()[\]\\"\u0000-\u001f\u007f]+@[^\s@,;:<>()[\]\\"\u0000-\u001f\u007f]+$/u

/** The address trimmed and in lower case; throws 400 `invalid_body` when it is invalid. */
export function readEmail(text: string): string {
  const email = text.trim().toLowerCase()
  if ([...email].length <= limits.emailCharsMax && form.test(email)) return email
  const message = 'email must be an address such as name@example.com.'
  throw new AppError('invalid_body', message, { issues: [{ path: 'email', message, code: 'wrong_format' }] })
}
