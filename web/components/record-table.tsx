/** A table of records: a head, one row per record, and the actions of each row in the last column. */
import './record-table.css'
import type { ComponentChildren } from 'preact'

export interface RecordColumn<Row> {
  name: string
  cell: (row: Row) => ComponentChildren
  class?: string
  number?: boolean // aligned to the right
}

interface RecordTableProps<Row> {
  label: string
  /** The first column names the record, unless `firstIsName` is false. */
  columns: RecordColumn<Row>[]
  firstIsName?: boolean
  rows: Row[]
  keyOf: (row: Row, index: number) => string
  /** Buttons of a row; null: no column of actions, for read-only roles. */
  actions?: ((row: Row) => ComponentChildren) | null
  /** Grey rows of records that are no longer in use. */
  isEnded?: (row: Row) => boolean
  class?: string
}

export function RecordTable<Row>(props: RecordTableProps<Row>) {
  const { label, columns, firstIsName = true, rows, keyOf, actions, isEnded } = props
  return (
    <div class="panel table-panel" tabIndex={0} role="region" aria-label={label}>
      <table class={`record-table ${props.class ?? ''}`}>
        <thead>
          <tr>
            {columns.map(({ name, number }) => (
              <th key={name} scope="col" class={number ? 'number' : undefined}>
                {name}
              </th>
            ))}
            {actions && (
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={keyOf(row, index)} class={isEnded?.(row) ? 'ended' : undefined}>
              {columns.map(({ name, cell, class: className, number }, n) =>
                n === 0 && firstIsName ? (
                  <th key={name} scope="row" class={className}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={name} class={number ? 'number' : className}>
                    {cell(row)}
                  </td>
                ),
              )}
              {actions && <td class="actions">{actions(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A button of a row, with the name of its record for screen readers. */
export function RowButton(props: { label: string; of: string; onClick: () => void; disabled?: boolean }) {
  return (
    <button
      type="button"
      class="button"
      aria-label={`${props.label} ${props.of}`}
      aria-disabled={props.disabled}
      onClick={() => props.disabled || props.onClick()}
    >
      {props.label}
    </button>
  )
}
