/**
 * The limit of ten emails a day for the sandbox sender (contract section 7.4).
 */
import { Refusal } from '#base'
import { type Db, sql } from '#db'

const sandboxPerDay = 10
const dayMs = 86_400_000

const takeSandbox = sql`
  insert into sandbox_days (day, used)
  values ($1, $2)
  on conflict (day) do update
  set used = sandbox_days.used + excluded.used
  where sandbox_days.used + excluded.used <= $3`

/** Counts `emails` for the UTC day, or refuses `sandbox_limit_exceeded` without counting. */
export async function takeSandboxSlots(db: Db, emails: number, nowMs: number): Promise<void> {
  const dayStartMs = Math.floor(nowMs / dayMs) * dayMs
  const day = new Date(dayStartMs).toISOString().slice(0, 10)
  if (emails <= sandboxPerDay && (await db.run(takeSandbox, [day, emails, sandboxPerDay])) === 1) return
  throw new Refusal('sandbox_limit_exceeded', {
    message: `from: the sandbox sender is limited to ${sandboxPerDay} emails per UTC day`,
    field: 'from',
    retryAfterSeconds: Math.ceil((dayStartMs + dayMs - nowMs) / 1000),
    shouldRetry: false,
  })
}
