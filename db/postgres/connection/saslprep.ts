/** Prepares a password for SCRAM as the server did when it was set (RFC 4013), which the driver does not. */

const spaces = /[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/g
const nothing = /[\u00ad\u034f\u1806\u180b-\u180d\u200c\u200d\u2060\ufe00-\ufe0f\ufeff]/g

/** Control characters, private use, surrogates, non-characters, and what changes how text is shown. */
const prohibited =
  /[\p{Cc}\p{Co}\p{Cs}\p{Noncharacter_Code_Point}\u0340\u0341\u06dd\u070f\u180e\u200e\u200f\u2028-\u202e\u2061-\u206f\u2ff0-\u2ffb\ufff9-\ufffd]/u

/** As in PostgreSQL, a password that cannot be prepared is used as it is. */
export function saslPrepared(password: string): string {
  if (/^[\x20-\x7e]*$/.test(password)) return password
  const prepared = password.replace(spaces, ' ').replace(nothing, '').normalize('NFKC')
  return prepared === '' || prohibited.test(prepared) ? password : prepared
}
