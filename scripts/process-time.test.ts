/** Processor time of whole process trees, from samples made by hand. */
import { expect, test } from 'bun:test'
import { parseStat, readProcesses, type ProcessTime, processTree } from './process-time.ts'

const proc = (pid: number, parent: number, ownMs: number, waitedMs = 0): ProcessTime => ({
  pid,
  parent,
  ownMs,
  waitedMs,
})

test('a line of /proc is parsed, whatever the name of the process', () => {
  const line = '42 (a) b (c) S 7 42 42 0 -1 4194560 13420 0 0 0 120 30 5 6 20 0 31 0 99 1 2 3'
  expect(parseStat(line)).toEqual(proc(42, 7, 1_500, 110))
})

test('a child that its parent waited for counts once', () => {
  const tree = processTree(1)
  tree.sample([proc(1, 0, 100), proc(2, 1, 300), proc(9, 0, 5_000)])
  tree.sample([proc(1, 0, 200, 350)])
  expect(tree.end(550)).toBe(550)
})

test('a child that nobody waited for adds its last sample, also when its parent ended before', () => {
  const tree = processTree(1)
  tree.sample([proc(1, 0, 100), proc(2, 1, 100), proc(3, 2, 400)])
  tree.sample([proc(1, 0, 100, 150), proc(3, 700, 500)])
  tree.sample([proc(1, 0, 100, 150), proc(3, 700, 600)])
  tree.sample([proc(1, 0, 100, 150)])
  expect(tree.end(250)).toBe(850)
})

test('children that run when the root ends count, unless its resource usage has them', () => {
  const sampled = [proc(1, 0, 100), proc(2, 1, 300), proc(3, 2, 900)]
  const lost = processTree(1)
  lost.sample(sampled)
  expect(lost.end(400)).toBe(1_300) // process 2 is in it
  const waited = processTree(1)
  waited.sample(sampled)
  expect(waited.end(1_300)).toBe(1_300)
})

test.if(process.platform === 'linux')('the processes of the machine include this one', () => {
  const find = () => readProcesses().find(({ pid }) => pid === process.pid)
  while (find()?.ownMs === 0); // the kernel counts in steps of 10 ms
  const self = find()
  expect(self).toMatchObject({ parent: process.ppid, waitedMs: expect.any(Number) })
  expect(self!.ownMs).toBeGreaterThan(0)
})
