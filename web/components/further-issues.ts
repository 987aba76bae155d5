/** The issue texts of an error that differ from its message; many errors repeat it. */

export function furtherIssues(error: { message: string; issues: { message: string }[] }): string {
  const seen = new Set([error.message])
  return error.issues
    .map(({ message }) => message)
    .filter((message) => !seen.has(message) && seen.add(message))
    .join(' ')
}
