/** Lost lines are counted with a reason, by where they came in. */
import { expect, test } from 'bun:test'
import { lossesOf } from './lost-lines.tsx'

const log = {
  siteId: 'shop',
  path: '/var/log/a.log',
  format: 'combined',
  agents: 0,
  people: 0,
  newestAt: null,
  storedAt: null,
  isDrain: false,
  reader: null,
  lines: 1_000,
  bad: 0,
}
const address = {
  siteId: 'shop',
  org: 'default',
  listen: 'udp:127.0.0.1:514',
  received: 80,
  dropped: 0,
  bad: 0,
  lastAt: null,
  format: null,
  problem: null,
}

test('nothing is said where nothing was lost', () => {
  expect(lossesOf({ logs: [log], syslog: [address] })).toEqual([])
})

test('how many lines of how many, and what to do', () => {
  const logs = [
    { ...log, bad: 3 },
    { ...log, bad: 430 },
    { ...log, isDrain: true, bad: 25 },
    { ...log, isDrain: true, siteId: 'blog', bad: 25 },
  ]
  const syslog = [{ ...address, bad: 20, dropped: 1 }]
  expect(lossesOf({ logs, syslog }).map(({ summary, advice }) => [summary, advice])).toEqual([
    ['3 of 1,000 lines (less than 1\u00a0%) did not fit the format combined', 'mixed log'],
    ['430 of 1,000 lines (43\u00a0%) did not fit the format combined', 'other format'],
    ['5 of 920 lines (less than 1\u00a0%) did not fit the format combined', 'drain'], // without those of syslog
    ['25 of 1,000 lines (3\u00a0%) did not fit the format combined', 'drain'],
    ['20 of 80 lines (25\u00a0%) fit no format since the server started', 'syslog'],
    ['1 line dropped since the server started', 'dropped'],
  ])
})
