/** A page opens soon after a click, within bounds that a busy machine meets. */
import { expect, test } from 'bun:test'
import { isFull } from '../support/runs.ts'
import { pageChangeBench, pageChangeTable } from './page-change.bench.ts'

/** The longest list and most charts; the start page too in a full run. The bench's own `--full` measures all pages. */
const pages = isFull ? ['Detect', 'Logs', 'Analytics'] : ['Logs', 'Analytics']

test('pages opened for the first time and again, over 3,000 events', async () => {
  const measured = await pageChangeBench(3_000, 1, 1, pages)
  const text = pageChangeTable(measured)
  console.log(text)
  for (const { name, first, later, floorMs, nodes } of measured.pages) {
    // On an idle machine both are under 100 ms, and inserting the nodes with one statement takes 15 to 60 ms.
    const soonMs = 600 + 10 * Math.max(...floorMs)
    for (const { shownMs, wholeMs } of [...first, ...later]) {
      expect([name, shownMs < soonMs, shownMs <= wholeMs]).toEqual([name, true, true])
    }
    expect([name, nodes > 15]).toEqual([name, true])
  }
}, 300_000)
