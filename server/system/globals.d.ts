/** Files that are embedded into the executable as text. */
declare module '*.md' {
  const text: string
  export default text
}
declare module '*.cfg' {
  const text: string
  export default text
}
declare module '*.conf' {
  const text: string
  export default text
}
declare module '*.py' {
  const text: string
  export default text
}
declare module '*.go' {
  const text: string
  export default text
}
declare module '*.php' {
  const text: string
  export default text
}
