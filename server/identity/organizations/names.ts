/** What organizations may be called: a name for people, a slug for commands. */
import { limits } from '../../limits.ts'

const slugForm = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
export const slugCharsMax = 40

/** What is wrong with a name, in words that follow it, or null. */
export function nameProblem(name: string): string | null {
  const chars = [...name].length
  const fits = chars >= 1 && chars <= limits.labelCharsMax && !/[\u0000-\u001f\u007f]/.test(name)
  return fits ? null : `must have 1 to ${limits.labelCharsMax} characters on one line`
}

export function isSlug(text: string): boolean {
  return slugForm.test(text) && text.length <= slugCharsMax && text !== 'system'
}

/** A slug made from a name; '' when there is nothing in it to make one of. */
export function slugOf(name: string): string {
  const words =
    name
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  return words.join('-').slice(0, slugCharsMax).replace(/-$/, '')
}
