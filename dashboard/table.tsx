import type { ComponentChildren } from 'preact'

export interface Column<R> {
  title: string
  cell: (row: R) => ComponentChildren
  /** Numbers are aligned to the right. */
  isNumber?: boolean
  class?: string
}

/** A table that scrolls by itself where there is no room for it. The first column names the row. */
export function Table<R>({
  name,
  columns,
  rows,
  keyOf,
}: {
  /** What it is a table of, for those who hear it. */
  name: string
  columns: readonly Column<R>[]
  rows: readonly R[]
  keyOf: (row: R, index: number) => string | number
}): preact.JSX.Element {
  const classOf = ({ isNumber, class: own = '' }: Column<R>): string =>
    [isNumber ? 'number' : '', own].filter(Boolean).join(' ')
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${name}, a table`}>
      <table>
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={keyOf(row, index)}>
              {columns.map((column, i) =>
                i === 0 ? (
                  <th key={column.title} scope="row" class={classOf(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.title} class={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A bar that is as long as its share of the longest one. */
export function Bar({ share, tone = 'done' }: { share: number; tone?: string }): preact.JSX.Element {
  return (
    <span class="stack" aria-hidden="true">
      <span class={tone} style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }} />
    </span>
  )
}
