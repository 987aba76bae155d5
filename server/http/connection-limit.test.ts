/** Listeners close before the limit of open files is reached, and reopen below it. */
import { expect, test } from 'bun:test'
import { startLog } from '../log.ts'
import { limitConnections } from './connection-limit.ts'

const log = startLog({
  level: 'error',
  clock: { now: () => 0 },
  sink: { write() {}, takeDropped: () => 0, flush: async () => {} },
})

test('pauses once near the limit and resumes once enough connections have ended', () => {
  const messages: string[] = []
  let files = 10
  let isTaken = false
  const acceptor = {
    pause: () => void messages.push('pause'),
    resume: () => {
      if (isTaken) throw new Error('the port is in use')
      messages.push('resume')
    },
  }
  const subject = limitConnections({ acceptors: [acceptor], log, limit: 400, open: () => files })
  const checkAt = (fileCount: number) => {
    files = fileCount
    subject.check()
    return messages.join(' ')
  }
  expect([299, 300, 320, Infinity, 299, 276].map(checkAt)).toEqual(['', ...Array(5).fill('pause')])
  isTaken = true
  expect(checkAt(274)).toBe('pause')
  isTaken = false
  expect([274, 274, 301].map(checkAt)).toEqual(['pause resume', 'pause resume', 'pause resume pause'])
  subject.stop()
})
