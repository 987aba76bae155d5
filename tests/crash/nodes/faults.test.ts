/** A run makes only the faults that this machine can make. */
import { expect, test } from 'bun:test'
import { fleetFaults, possible } from './faults.ts'

test('a fault whose program is missing is left out and its package named', () => {
  const run = async () => undefined
  const lines: string[] = []
  const faults = possible(
    {
      'clock off': { weight: 1, needs: { file: '/nowhere/libfaketime.so', install: 'libfaketime' }, run },
      'clock off on this machine': { weight: 1, needs: { file: import.meta.path, install: 'x' }, run },
      'node killed': { weight: 4, run },
    },
    (line) => lines.push(line),
  )
  expect(Object.keys(faults)).toEqual(['clock off on this machine', 'node killed'])
  expect(lines).toEqual(['without "clock off": apt-get install libfaketime'])
})

test('faults of clocks and poolers name their packages', () => {
  const requirements = Object.entries(fleetFaults).flatMap(([name, { needs }]) =>
    needs ? [[name, needs.install]] : [],
  )
  expect(requirements).toEqual([
    ['clock off by an hour', 'libfaketime'],
    ['pooler restarted', 'pgbouncer'],
  ])
})
