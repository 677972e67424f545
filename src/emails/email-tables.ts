/** The tables of emails, as partitions are made for them. */
import type { PartitionedTable } from '#db'

/**
 * Tables partitioned by day by the time in their email ids. Emails leave free space for a changed status of every row of a page, because
 * statuses are written page by page: no index then needs an update. Contents up to a page's size stay in their row, which costs the
 * database less than separate rows.
 */
const [emails, contents, attempts]: readonly [PartitionedTable, PartitionedTable, PartitionedTable] = [
  { table: 'emails', key: 'email-id', settings: 'fillfactor = 50' },
  { table: 'contents', key: 'email-id', settings: 'toast_tuple_target = 8160' },
  { table: 'attempts', key: 'email-id' },
]
export const emailTables: readonly PartitionedTable[] = [emails, contents, attempts]
/** Those of emails without content. */
export const recordTables: readonly PartitionedTable[] = [emails, attempts]
