/** Parses a server-sent event stream, wherever the network splits it. */

export interface StreamMessage {
  event: string
  id: string | null
  data: string
}

/** A stateful parser: accepts text as it arrives and returns the complete messages. */
export function messageReader(): (text: string) => StreamMessage[] {
  let rest = ''
  let lines: string[] = []
  return (text) => {
    const messages: StreamMessage[] = []
    rest += text
    // A carriage return at the end may be the first half of CRLF, so it waits for more text.
    const whole = rest.split(/\r\n|\n|\r(?!$)/)
    rest = whole.pop() ?? ''
    for (const line of whole) {
      if (line !== '') {
        lines.push(line)
        continue
      }
      const message = messageOf(lines)
      if (message !== null) messages.push(message)
      lines = []
    }
    return messages
  }
}

function messageOf(lines: string[]): StreamMessage | null {
  let event = 'message'
  let id: string | null = null
  const data: string[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon === 0) continue // a comment, sent as a heartbeat
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'event') event = value
    else if (name === 'id') id = value
    else if (name === 'data') data.push(value)
  }
  return data.length === 0 ? null : { event, id, data: data.join('\n') }
}
