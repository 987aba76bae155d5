/** The connections of the append thread, which waits for no answer. */
import { openClient } from '../connection/client.ts'
import { toRowObject } from '../connection/dialect.ts'
import { serverOptions, type ConnectionOptions } from '../connection/options.ts'

/** One for each outstanding group, and one for lookups beside them. */
const connections = 3

export type Parameter = string | number | Uint8Array | null

export interface AppendClient {
  /** Before the names of tables and functions, because a pooler forgets the search path. */
  schema: string
  rows<Row>(text: string, parameters: Parameter[]): Promise<Row[]>
  end(): Promise<void>
}

export function openAppendClient(options: ConnectionOptions): AppendClient {
  const server = serverOptions(options)
  const links = Array.from({ length: connections }, () => ({ client: openClient(server), open: 0 }))
  return {
    schema: server.schema,
    async rows(sql, params) {
      const link = links.reduce((best, candidate) => (candidate.open < best.open ? candidate : best))
      link.open++
      try {
        const { columns, rows } = await link.client.handle({
          do: 'execute',
          sql,
          params,
          reused: true,
          within: null,
        })
        return rows.map((row) => toRowObject(columns, row)) as never[]
      } finally {
        link.open--
      }
    },
    async end() {
      await Promise.allSettled(links.map(({ client }) => client.handle({ do: 'close' })))
    },
  }
}
