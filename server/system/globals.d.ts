/** Files that are read as text into the executable. */
declare module '*.md' {
  const text: string
  export default text
}
