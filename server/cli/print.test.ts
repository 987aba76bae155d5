/** Printing: aligned columns, and foreign text that cannot control the terminal. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { columns, oneLine } from './print.ts'

test('columns align wide characters and have no trailing spaces', () => {
  expect(
    columns(
      ['A', 'NAME'],
      [
        ['1', '東京'],
        ['22', 'x'],
      ],
    ).split('\n'),
  ).toEqual(['A   NAME', '1   東京', '22  x'])
  expect(columns(['WIDE', 'B'], [['東京都', 'y']]).split('\n')).toEqual(['WIDE    B', '東京都  y'])
  expect(columns(['A', 'B'], [])).toBe('A  B')
})

test('escape sequences, line ends and direction marks become spaces', () => {
  expect(oneLine('a\u001b[31mred\r\nb\u202ec\u0085d')).toBe('a [31mred b c d')
})

test('a reader that closes early causes no failure; a slow one gets everything', async () => {
  const script = `
    import { print } from ${JSON.stringify(join(import.meta.dir, 'print.ts'))}
    print('x'.repeat(1_000_000)); print('last'); process.exit(7)`
  const shell = (reader: string) =>
    Bun.spawn(['bash', '-c', `"$0" -e "$1" | ${reader}; exit \${PIPESTATUS[0]}`, process.execPath, script], {
      stdout: 'pipe',
    })
  const early = shell('head -c 10')
  expect([await new Response(early.stdout).text(), await early.exited]).toEqual(['xxxxxxxxxx', 7])
  const slow = shell('(sleep 0.3; tail -c 5)')
  expect([await new Response(slow.stdout).text(), await slow.exited]).toEqual(['last\n', 7])
})
