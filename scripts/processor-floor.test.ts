/** The work of the floor stays the same, or runs could not be compared. */
import { expect, test } from 'bun:test'
import { fixedWork } from './processor-floor.ts'

test('the fixed work has not changed', () => {
  expect(fixedWork()).toBe('10c1ce44c5d21a79a851d7b01af5e9aaf2c68bea79edbac448ead393cbe1df52')
})
