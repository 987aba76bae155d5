/** A JSON Schema as a table: fields, types, required, description. */
import { Text } from '../../components/text.tsx'
import type { Json } from '../../api/registry-api.ts'
import { type SchemaRow, schemaTable, typeOf } from './schema.ts'

const choicesMax = 12

export function SchemaView({
  title,
  schema,
  none,
}: {
  title: string
  schema: Json | undefined
  none: string
}) {
  const { rows, more } = schemaTable(schema)
  return (
    <section class="panel schema-view">
      <h3>{title}</h3>
      {schema == null && <p class="muted">{none}</p>}
      {schema != null && rows.length === 0 && (
        <p>
          <Text value={typeOf(schema)} max={80} /> <span class="muted">without properties</span>
        </p>
      )}
      {rows.length > 0 && (
        <div class="schema-scroll" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col">Description</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => (
                <Member key={index} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && <p class="muted">Not all fields are shown. The full descriptor is at the end of this page.</p>}
    </section>
  )
}

function Member({ row }: { row: SchemaRow }) {
  return (
    <tr>
      <th scope="row" class={`depth-${Math.min(row.depth, 6)}`}>
        <Text value={row.name} max={48} mono />
      </th>
      <td>
        <Text value={row.type} max={48} />
        {row.required && <b class="required"> required</b>}
      </td>
      <td>
        {row.description !== '' && (
          <p>
            <Text value={row.description.slice(0, 1_000)} multiline />
          </p>
        )}
        {row.limits.length > 0 && (
          <p class="muted">
            <Text value={row.limits.join(', ')} max={200} />
          </p>
        )}
        {row.choices.length > 0 && <Choices list={row.choices} />}
      </td>
    </tr>
  )
}

function Choices({ list }: { list: string[] }) {
  return (
    <p class="choices-line">
      <span class="muted">one of </span>
      {list.slice(0, choicesMax).map((choice) => (
        <code key={choice}>
          <Text value={choice} max={40} />
        </code>
      ))}
      {list.length > choicesMax && <span class="muted"> and {list.length - choicesMax} more</span>}
    </p>
  )
}
