/** What the issues of an error say beyond its message: most errors with one issue say the same thing twice. */

export function furtherIssues(error: { message: string; issues: { message: string }[] }): string {
  const said = new Set([error.message])
  return error.issues
    .map(({ message }) => message)
    .filter((message) => !said.has(message) && said.add(message))
    .join(' ')
}
