/** Text of strangers in HTML that the server writes. */

const shownChars = 120

/** Isolated from the direction of its surroundings. */
export function textHtml(text: string): string {
  return `<bdi>${plainHtml(text)}</bdi>`
}

/** The same where elements are not allowed: cut, and characters that cannot be seen as codes. */
export function plainHtml(text: string): string {
  const chars = [...text.slice(0, 4 * shownChars)]
  const cut = chars.length > shownChars ? `${chars.slice(0, shownChars).join('')}…` : text
  const visible = cut.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`,
  )
  return Bun.escapeHTML(visible)
}

/** 12418 → "12,418" */
export function countText(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}
