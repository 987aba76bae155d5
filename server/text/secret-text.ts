/**
 * The text of a secret, the same whether a person types it, an environment passes it or a file holds it. Editors and
 * shells add a byte order mark or a line end; keyboards write the same letter in several ways.
 */

/** Without the byte order mark before it and the line ends behind it. Spaces belong to the secret. */
export function trimSecret(text: string): string {
  return text.replace(/^\uFEFF/, '').replace(/[\r\n]+$/, '')
}

/** What a decoder writes for bytes that are not UTF-8: different secrets would become one. */
export function hasUnreadableBytes(text: string): boolean {
  return text.includes('\uFFFD')
}

/** The form of a password that is hashed: RFC 8265, OpaqueString. Every space is U+0020, then composed. */
export function canonicalPassword(password: string): string {
  return trimSecret(password)
    .replace(/\p{Zs}/gu, ' ')
    .normalize('NFC')
}

/**
 * The forms in which an earlier release may have hashed the same password, after the form that is hashed now: as it
 * was typed, and decomposed. A password of ASCII characters has one form.
 */
export function passwordForms(password: string): string[] {
  const trimmed = trimSecret(password)
  return [...new Set([canonicalPassword(password), password, trimmed, trimmed.normalize('NFD')])]
}

/** The passphrase that encrypts a backup. */
export function canonicalPassphrase(passphrase: string): string {
  return trimSecret(passphrase).normalize('NFC')
}

/**
 * The forms in which an earlier release may have read the same passphrase, after the form that encrypts now: with the
 * byte order mark and line end of its variable or file.
 */
export function passphraseForms(passphrase: string): string[] {
  const canonical = canonicalPassphrase(passphrase)
  const lineEnds = ['', '\n', '\r\n', '\n\n']
  return ['', '\uFEFF'].flatMap((mark) => lineEnds.map((lineEnd) => `${mark}${canonical}${lineEnd}`))
}
