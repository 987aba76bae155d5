/** Opens PostgreSQL connections whose statements block the calling thread, for the shared SQL. */
import { StoreError } from '../../contract/errors.ts'
import type { Database, SqlValue, Statement } from '../../sql/database.ts'
import { dialect, listsOf, toRowObject, ordered, overLists, reads, translate } from './dialect.ts'
import { serverOptions, type ConnectionOptions } from './options.ts'
import { openSession, type Session } from './session.ts'
import type { Answer } from './wire.ts'

/** Rows of one batch of `iterate`, and of one message of `runEach`. */
const batchRows = 256
const eachRows = 1_000

/** A connection keeps that many statements prepared on the server. Further texts are parsed each time. */
const preparedMax = 1_000

const versionMin = 15

export function openConnection(options: ConnectionOptions): Database {
  const server = serverOptions(options)
  const session = openSession(server)
  const statements = new Map<string, Statement>()
  try {
    const { rows } = session.ask({ do: 'open', options: server })
    const version = Math.floor(Number(rows[0]?.[0]) / 10_000)
    if (version < versionMin)
      throw new StoreError('internal', `PostgreSQL ${version} is too old: ${versionMin} or newer is required`)
  } catch (error) {
    session.close()
    throw error
  }

  return {
    query<Row, Params extends SqlValue[]>(text: string) {
      const isKept = statements.size < preparedMax
      const statement = statements.get(text) ?? statementOn(session, text, isKept)
      if (isKept) statements.set(text, statement)
      return statement as Statement<Row, Params>
    },
    run: (text) => (session.control(text) ?? (() => session.ask({ do: 'script', sql: text })))(),
    runEach(text, rows) {
      const { sql, order } = translate(text)
      const ofLists = overLists(sql)
      for (let from = 0; from < rows.length; from += eachRows) {
        const batch = rows.slice(from, from + eachRows).map((row) => ordered(order, row))
        const lists = ofLists === null ? null : listsOf(batch)
        if (ofLists === null || lists === null) session.ask({ do: 'each', sql, rows: batch })
        else session.ask({ do: 'execute', sql: ofLists, params: lists, reused: true })
      }
    },
    get inTransaction() {
      return session.inTransaction()
    },
    dialect,
    close: session.close,
  }
}

function statementOn(session: Session, text: string, reused: boolean): Statement {
  const { sql, order } = translate(text)
  const isLookup = reads(text)
  const control = session.control(text)
  const execute = (params: SqlValue[]): Answer =>
    control?.() ?? session.ask({ do: 'execute', sql, params: ordered(order, params, isLookup), reused })
  return {
    get(...params) {
      const { columns, rows } = execute(params)
      return rows[0] === undefined ? null : toRowObject(columns, rows[0])
    },
    all(...params) {
      const { columns, rows } = execute(params)
      return rows.map((row) => toRowObject(columns, row))
    },
    values: (...params) => execute(params).rows,
    run: (...params) => ({ changes: execute(params).changes }),
    iterate: (...params) => batches(session, sql, ordered(order, params, isLookup)),
  }
}

/** A caller that stops early closes the query on the server. */
function* batches(session: Session, sql: string, params: SqlValue[]): Generator<unknown> {
  const isAlone = session.beginAlone()
  let hasMore = false
  try {
    let { columns, rows } = session.ask({ do: 'first', sql, params, size: batchRows })
    hasMore = rows.length === batchRows
    for (;;) {
      for (const row of rows) yield toRowObject(columns, row)
      if (!hasMore) return
      hasMore = false // until the answer is there: a query that failed is closed
      rows = session.ask({ do: 'more' }).rows
      hasMore = rows.length === batchRows
    }
  } finally {
    if (hasMore && session.isUsable()) session.ask({ do: 'stop' })
    if (isAlone) session.control('ROLLBACK')?.() // it only read
  }
}
