/** SQL files are imported as text, so that the executable carries them. */
declare module '*.sql' {
  const text: string
  export default text
}
