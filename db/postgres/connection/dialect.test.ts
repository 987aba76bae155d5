/** Statements of the shared SQL as PostgreSQL reads them. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { translate } from './dialect.ts'

const sqlOf = (text: string): string => translate(text).sql

test('parameters become numbers in order of appearance, each sent once', () => {
  expect(translate('a = ? AND b = ?')).toEqual({ sql: 'a = $1 AND b = $2', order: [0, 1] })
  expect(translate('a = ?2 AND b = ?1 OR c = ?2')).toEqual({
    sql: 'a = $1 AND b = $2 OR c = $1',
    order: [1, 0],
  })
  expect(translate('a = ?3 AND b = ?')).toEqual({ sql: 'a = $1 AND b = $2', order: [2, 3] })
  expect(translate('WHERE org = ?2')).toEqual({ sql: 'WHERE org = $1', order: [1] })
})

test('names in camel case are quoted, keywords and other names are not', () => {
  expect(sqlOf('SELECT min(at_ms) AS minAt, e.orgId FROM event AS e')).toBe(
    'SELECT min(at_ms) AS "minAt", e."orgId" FROM event AS e',
  )
  expect(sqlOf('SELECT COUNT(*), lower(A1), 1e5, 0xFf FROM x_Y')).toBe(
    'SELECT COUNT(*), lower(A1), 1e5, 0xFf FROM "x_Y"',
  )
})

const text = fc.string({ maxLength: 12 })
const quoted = fc.oneof(
  text.map((inner) => `'${inner.replaceAll("'", "''")}'`),
  text.map((inner) => `"${inner.replaceAll('"', '""')}"`),
  text.map((inner) => `-- ${inner.replaceAll('\n', ' ')}\n`),
  text.map((inner) => `/* ${inner.replaceAll('*', '')} */`),
  text.map((inner) => `$body$ ${inner.replaceAll('$', '')} $body$`),
)
const code = fc.constantFrom(' SELECT ', ' ? ', ' ?2 ', ' minAt ', ' 12.5 ', ' = ', ' (', ') ', ', ', ' x ')

test('strings, quoted names and comments stay as they are, whatever is in them', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(code, quoted)), (parts) => {
      const source = parts.map(([separator, part]) => separator + part).join('')
      const bareText = parts.map(([separator]) => separator).join(';')
      const { sql, order } = translate(source)
      const plain = translate(bareText)
      const expected = plain.sql.split(';').map((separator, index) => separator + (parts[index]?.[1] ?? ''))
      expect({ sql, order }).toEqual({ sql: expected.join(''), order: plain.order })
    }),
  )
})

test('a translated statement with the same values means the same', () => {
  const usedNumbers = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(usedNumbers, (numbers) => {
      const values = ['a', 'b', 'c', 'd', 'e', 'f']
      const { sql, order } = translate(numbers.map((number) => `?${number}`).join(' '))
      const sentValues = order.map((index) => values[index])
      const read = [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => sentValues[Number(number) - 1])
      expect(read).toEqual(numbers.map((number) => values[number - 1]!))
      expect(new Set(order).size).toBe(order.length)
    }),
  )
})
