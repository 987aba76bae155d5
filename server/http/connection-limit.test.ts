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
  const said: string[] = []
  let files = 10
  let isTaken = false
  const acceptor = {
    pause: () => void said.push('pause'),
    resume: () => {
      if (isTaken) throw new Error('the port is in use')
      said.push('resume')
    },
  }
  const subject = limitConnections({ acceptors: [acceptor], log, limit: 400, open: () => files })
  const at = (many: number) => {
    files = many
    subject.check()
    return said.join(' ')
  }
  expect([299, 300, 320, Infinity, 299, 276].map(at)).toEqual(['', ...Array(5).fill('pause')])
  isTaken = true
  expect(at(274)).toBe('pause')
  isTaken = false
  expect([274, 274, 301].map(at)).toEqual(['pause resume', 'pause resume', 'pause resume pause'])
  subject.stop()
})
