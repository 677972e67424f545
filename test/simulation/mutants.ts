/**
 * Mutants of the engine: each breaks one guarantee by a changed line, to prove that the simulation notices. A hook changes the source while
 * it is loaded; the files on disk stay as they are.
 */
import { registerHooks } from 'node:module'

interface Change {
  file: string
  line: string
  instead: string
}

export const mutants: Readonly<Record<string, Change>> = {
  'commit after reply': {
    file: 'src/accept/accept.ts',
    line: 'const committed = await this.#deps.commit({ submissions, idempotency: key && { ...key, body } })',
    instead: `const committed = { committed: true as const, sendLimitUsage: await this.sendLimitUsage(test) }
      setImmediate(() => void this.#deps.commit({ submissions, idempotency: key && { ...key, body } }).catch(() => undefined))`,
  },
  'lease not fenced': {
    file: 'src/spool/leases.ts',
    line: 'return this.isBelieved() && this.#mine.get(shard)?.epoch === epoch',
    instead: 'return true || this.#mine.get(shard)?.epoch === epoch',
  },
  'completion without epoch check': {
    file: 'src/delivery/record-outcomes.ts',
    line: 'isStillClaimed(sql.part`outcome`)',
    instead: 'sql.part`(spool.tenant_id, spool.email_id) = (outcome.tenant_id, outcome.email_id)`',
  },
  'jitter out of bounds': {
    file: 'src/spool/retry-schedule.ts',
    line: '(1 - jitter + 2 * jitter * random)',
    instead: '(1 - jitter + 3 * jitter * random)',
  },
  'hold not released': {
    file: 'src/spool/queue-updates.ts',
    line: "= 'held' and hold_reason = $3",
    instead: "= 'held' and hold_reason = $3 and attempt_count > 0",
  },
  'usage counted twice': {
    file: 'src/emails/email-counts.ts',
    line: "if (kind === 'EmailsAccepted') return { accepted: count, test: test ? count : 0 }",
    instead: "if (kind === 'EmailsAccepted') return { accepted: count === 3 ? 6 : count, test: test ? count : 0 }",
  },
  'event dropped': {
    file: 'src/delivery/record-outcomes.ts',
    line: `|| case when simulated_at is null then '{}'::jsonb else jsonb_build_object('simulatedAt', extract(epoch from simulated_at) * 1000) end
    from recorded`,
    instead: `|| case when simulated_at is null then '{}'::jsonb else jsonb_build_object('simulatedAt', extract(epoch from simulated_at) * 1000) end
    from recorded
    where attempt_number <> 3`,
  },
  'unfair order': {
    file: 'src/spool/claim.ts',
    line: 'order by turn.nth + coalesce(busy.recipients, 0), turn.email_id',
    instead: 'order by turn.tenant_id, turn.nth, turn.email_id',
  },
}

/** Call it before the engine is loaded. */
export function breakEngine(name: string): void {
  const change = mutants[name]
  if (!change) throw new Error(`there is no mutant "${name}"; there are: ${Object.keys(mutants).join(', ')}`)
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.endsWith(`/${change.file}`)) return loaded
      const parts = (loaded.source as Buffer).toString().split(change.line)
      if (parts.length - 1 !== 1) throw new Error(`the line to change is not in ${change.file}`)
      return { ...loaded, source: parts.join(change.instead) }
    },
  })
}
