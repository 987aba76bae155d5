/** The JSON text of an event without its id and session, which are stored once each. */

const idName = '"id":'
const sessionName = '"sessionId":'

export interface SplitText {
  text: string
  idAt: number // where the id belongs after the session was inserted; 0 when it stayed in the text
  sessionAt: number // where the session belongs in `text`
}

/**
 * `id` and `session` are JSON texts. Only the first field of each name is examined. It may belong to a nested object,
 * which is harmless because it is inserted at the same position.
 */
export function splitText(json: string, id: string, session: string): SplitText {
  const idAt = valueAt(json, idName, id)
  const idEnd = idAt + id.length
  const sessionAt = valueAt(json, sessionName, session)
  if (idAt === 0) return cut(json, 0, sessionAt, session)
  if (sessionAt < idEnd) return cut(json.slice(0, idAt) + json.slice(idEnd), idAt, sessionAt, session)
  const sessionEnd = sessionAt + session.length
  const text = json.slice(0, idAt) + json.slice(idEnd, sessionAt) + json.slice(sessionEnd)
  return { text, idAt, sessionAt: sessionAt - id.length }
}

function valueAt(json: string, name: string, value: string): number {
  const at = json.indexOf(name) + name.length
  return at >= name.length && json.startsWith(value, at) ? at : 0
}

/** Cuts only the session out of a text where it precedes the id, or whose id stays. */
function cut(text: string, idAt: number, sessionAt: number, session: string): SplitText {
  if (sessionAt === 0) return { text, idAt, sessionAt }
  return { text: text.slice(0, sessionAt) + text.slice(sessionAt + session.length), idAt, sessionAt }
}

/** Slices the given text only: slicing one that was just joined copies it once more. */
export function joinText({ text, idAt, sessionAt }: SplitText, id: string, session: string): string {
  if (idAt === 0) return sessionAt === 0 ? text : text.slice(0, sessionAt) + session + text.slice(sessionAt)
  if (sessionAt === 0) return text.slice(0, idAt) + id + text.slice(idAt)
  if (idAt <= sessionAt)
    return text.slice(0, idAt) + id + text.slice(idAt, sessionAt) + session + text.slice(sessionAt)
  const at = idAt - session.length
  return text.slice(0, sessionAt) + session + text.slice(sessionAt, at) + id + text.slice(at)
}
