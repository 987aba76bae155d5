/** Takes the id and the session out of an event's JSON text and puts them back, so that each is stored once. */

const idName = '"id":'
const sessionName = '"sessionId":'

export interface SplitText {
  text: string
  idAt: number // where the id belongs, after the session has been put back; 0 when it was left in place
  sessionAt: number // where in `text` the session belongs
}

/**
 * `id` and `session` are JSON texts. Only the first member of each name is looked at, and it may be another object's:
 * that does no harm, because what is taken out goes back to the same place.
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

/** Takes the session alone out of a text in which it stands before the id, or whose id stays. */
function cut(text: string, idAt: number, sessionAt: number, session: string): SplitText {
  if (sessionAt === 0) return { text, idAt, sessionAt }
  return { text: text.slice(0, sessionAt) + text.slice(sessionAt + session.length), idAt, sessionAt }
}

export function joinText({ text, idAt, sessionAt }: SplitText, id: string, session: string): string {
  const whole = sessionAt === 0 ? text : text.slice(0, sessionAt) + session + text.slice(sessionAt)
  return idAt === 0 ? whole : whole.slice(0, idAt) + id + whole.slice(idAt)
}
