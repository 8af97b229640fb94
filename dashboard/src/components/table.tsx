// A table with sortable columns. On a phone each row becomes a card.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** The value to sort by. Columns without it are not sortable. */
  sort?: (row: Row) => number | string;
  numeric?: boolean;
  /** The cell that names the row. */
  main?: boolean;
}

interface Order {
  title: string;
  descending: boolean;
}

export function Table<Row>({ columns, rows, id, onRow, selected, below, initial, label }: {
  columns: Column<Row>[];
  rows: Row[];
  id: (row: Row) => string | number;
  onRow?: (row: Row) => void;
  selected?: string | number | undefined;
  /** Content that opens below a row. */
  below?: (row: Row) => ComponentChildren;
  initial?: Order;
  label: string;
}) {
  const [order, setOrder] = useState<Order | undefined>(initial);
  const sorted = sort(rows, columns, order);
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="table">
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.title}
                class={column.numeric ? "numeric" : undefined}
                scope="col"
                aria-sort={order?.title === column.title ? (order.descending ? "descending" : "ascending") : undefined}
              >
                {column.sort ? (
                  <button type="button" onClick={() => setOrder(next(order, column.title, !!column.numeric))}>
                    {column.title}
                    <span class="sort-mark" aria-hidden="true">
                      {order?.title === column.title ? (order.descending ? "↓" : "↑") : ""}
                    </span>
                  </button>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => {
            const key = id(row);
            const more = below?.(row);
            return [
              <tr
                key={key}
                class={`${onRow ? "clickable" : ""} ${selected === key ? "selected" : ""}`}
                onClick={onRow && ((event) => clicked(event, () => onRow(row)))}
              >
                {columns.map((column) => (
                  <td
                    key={column.title}
                    class={`${column.numeric ? "numeric" : ""} ${column.main ? "main" : ""}`}
                    data-label={column.title}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>,
              more && (
                <tr key={`${key}-below`} class="below">
                  <td colSpan={columns.length}>{more}</td>
                </tr>
              ),
            ];
          })}
        </tbody>
      </table>
    </div>
  );
}

/** A click on a row, unless it was on a link or a button of the row. */
function clicked(event: Event, act: () => void): void {
  if (!(event.target as Element).closest("a, button, input")) act();
}

function next(order: Order | undefined, title: string, numeric: boolean): Order {
  return order?.title === title ? { title, descending: !order.descending } : { title, descending: numeric };
}

function sort<Row>(rows: Row[], columns: Column<Row>[], order: Order | undefined): Row[] {
  const by = order && columns.find((column) => column.title === order.title)?.sort;
  if (!by) return rows;
  const sign = order.descending ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(by(a), by(b)));
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === "string" || typeof b === "string") return String(a).localeCompare(String(b));
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : -1;
  return Number.isNaN(b) ? 1 : a - b;
}
