/** Takes the id and the session out of an event's JSON text and puts them back, so that each is stored once. */

const idName = '"id":'
const sessionName = '"sessionId":'

export interface SplitText {
  text: string
  idAt: number // where in `text` the id belongs; 0 when it was left in place
  sessionAt: number
}

/** `id` and `session` are JSON texts. The first match may be another member's: what is taken out goes back there. */
export function splitText(json: string, id: string, session: string): SplitText {
  const idFound = json.indexOf(idName + id)
  const idAt = idFound < 0 ? 0 : idFound + idName.length
  const afterId = idAt === 0 ? json : json.slice(0, idAt) + json.slice(idAt + id.length)
  const sessionFound = afterId.indexOf(sessionName + session)
  if (sessionFound < 0) return { text: afterId, idAt, sessionAt: 0 }
  const sessionAt = sessionFound + sessionName.length
  return { text: afterId.slice(0, sessionAt) + afterId.slice(sessionAt + session.length), idAt, sessionAt }
}

export function joinText({ text, idAt, sessionAt }: SplitText, id: string, session: string): string {
  const withSession = sessionAt === 0 ? text : text.slice(0, sessionAt) + session + text.slice(sessionAt)
  return idAt === 0 ? withSession : withSession.slice(0, idAt) + id + withSession.slice(idAt)
}
