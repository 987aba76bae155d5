/** The Host allow-list: which names open the dashboard. */
import { expect, test } from 'bun:test'
import { hostAllowed, hostName } from './host-guard.ts'

const rule = { listenHosts: ['10.1.2.3'], publicUrl: 'https://agents.example.com', allowedHosts: ['box.lan'] }

test('loopback names, literals, the public name and allowed hosts pass', () => {
  const good = ['localhost:7400', 'a.localhost', '127.0.0.1:7400', '[::1]:7400', '10.1.2.3', '192.168.7.9:80']
  for (const host of [...good, 'AGENTS.example.com', 'agents.example.com.', 'box.lan:7400']) {
    expect([host, hostAllowed(host, rule)]).toEqual([host, true])
  }
})

test('a name that only resolves to this machine does not', () => {
  const bad = [
    'evil.example',
    'localhost.evil.example',
    'notlocalhost',
    'agents.example.com.evil.example',
    '',
    'a b',
  ]
  for (const host of [...bad, null, 'localhost:7400:1', '[::1', 'user@localhost', 'localhost:port']) {
    expect([host, hostAllowed(host, rule)]).toEqual([host, false])
  }
})

test('the name is read without port, brackets, case and trailing dot', () => {
  expect(['[::1]:7400', 'LocalHost.:1', 'a_b.c'].map(hostName)).toEqual(['::1', 'localhost', 'a_b.c'])
})
