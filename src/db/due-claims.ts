/**
 * Claims rows that are due, such as domains to check, in turns by tenant: a tenant with thousands of due rows, each of which takes long,
 * does not delay those of others. Several processes may claim from one table.
 *
 * The cost of a claim does not grow with the number of due rows. It reads at most `mostRead` of them, along the index on next_check_at, and
 * numbers these by tenant; with 100,000 due rows it reads 5,000. The next claim continues after them, and one that reaches the last due row
 * begins again at the first. So while at most `mostRead` rows are due, each claim sees those of every tenant, and otherwise one of
 * (due rows / `mostRead`) claims does, however many rows of one tenant are before them. Rows that are due at the very time at which a claim
 * stopped reading wait for the next pass.
 */
import type { Queryable } from './queryable.ts'
import { type Sql, sql } from './sql-tag.ts'

type Claimed<Row> = Row & { turn: number; readTo: Date | null }

const mostRead = 5000
const mostOfTenant = 10
const mostClaimed = 40
/** A row whose process ended is due again after this time. */
const claimedForMs = 300_000
const start = '-infinity'

/** `table` has the columns tenant_id and id, its primary key, and next_check_at with an index. */
export const claimOfDue = <Row>(table: Sql<unknown>, columns: Sql<unknown>): Sql<Claimed<Row>> => sql<Claimed<Row>>`
  with due as (
    select tenant_id, id, next_check_at
    from ${table}
    where next_check_at > $1 and next_check_at <= $2
    order by next_check_at
    limit $3
  ),
  numbered as (
    select tenant_id, id, next_check_at, row_number() over (partition by tenant_id order by next_check_at, id) as turn
    from due
  ),
  chosen as (
    select tenant_id, id, turn
    from numbered
    where turn <= $4
    order by turn, next_check_at
    limit $5
  )
  update ${table}
  set next_check_at = $6
  from (
    select candidate.tenant_id as claimed_tenant, candidate.id as claimed_id, chosen.turn
    from chosen
    join ${table} as candidate on candidate.tenant_id = chosen.tenant_id and candidate.id = chosen.id
    where candidate.next_check_at <= $2
    for update of candidate skip locked
  ) as claimed
  where tenant_id = claimed_tenant and id = claimed_id
  returning ${columns}, turn, (select max(due.next_check_at) from due having count(*) = $3) as "readTo"`

/** The claims of one process. */
export class DueClaims<Row> {
  readonly #db: Queryable
  readonly #statement: Sql<Claimed<Row>>
  #after: Date | typeof start = start

  constructor(db: Queryable, statement: Sql<Claimed<Row>>) {
    this.#db = db
    this.#statement = statement
  }

  /** Rows for this caller alone, first one of each tenant, then a second of each, and so on. `isLast`: no further row was due. */
  async claim(nowMs: number): Promise<{ rows: Row[]; isLast: boolean }> {
    const limits = [mostRead, mostOfTenant, mostClaimed]
    const rows = await this.#db.rows(this.#statement, [this.#after, new Date(nowMs), ...limits, new Date(nowMs + claimedForMs)])
    const readTo = rows[0]?.readTo ?? null
    const isLast = this.#after === start && readTo === null && rows.length < mostOfTenant
    this.#after = readTo ?? start
    return { rows: rows.toSorted((one, other) => one.turn - other.turn), isLast }
  }
}
