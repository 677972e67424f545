/**
 * Creates a million emails like those of an installation after thirty days: tenants of very different size, a few senders, many recipients,
 * subjects from a few thousand words, metadata, keys. Inserts directly into the database; the counts equal those of the roll-up.
 */
import { emailIdPrefix } from '#base'
import { type Db, ensurePartitions, sql } from '#db'
import { emailTables } from '#emails'

const days = 30
const dayMs = 86_400_000
const batch = 20_000
const tenants = 100

export const addTenants = sql`
  insert into tenants (id, name, status, metadata, is_default, created_at, updated_at)
  select 't' || lpad(n::text, 23, '0'), 'Tenant ' || n, 'active', '{}', false, $1, $1
  from generate_series(1, $2::integer) as n`
const addEmails = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, tag, metadata, message_id, test, credential_id, status, accepted_at)
  select tenant_id, id, id, 'person' || nth * 7 % 200000 || '@example' || nth % 50 || '.com', 'shop@mail' || nth % 20 || '.example.net',
         'Shop <shop@mail' || nth % 20 || '.example.net>',
         'Your order ' || nth || ' of word' || nth % 3001 || ' and word' || nth * 13 % 2003 || ' is on its way',
         case when nth % 5 = 0 then null when nth % 3 = 0 then 'order' else 'tag' || nth % 1000 end,
         jsonb_build_object('order_id', nth::text, 'shop', 'shop' || nth % 40), '<' || id || '@example.net>', false, nth % 7,
         case when nth % 1000 = 0 then 'bounced' when nth % 100 = 0 then 'hardfail' else 'sent' end, at
  from unnest($1::text[], $2::text[], $3::integer[], $4::timestamptz[]) as given (tenant_id, id, nth, at)`
/** Creates the counts that the roll-up would have made. */
export const countEmails = sql`
  insert into email_counts (tenant_id, span, starts_at, accepted, test, sent, softfail, hardfail, bounced, held)
  select coalesce(tenant_id, ''), span, date_bin(width, accepted_at, '2001-01-01'), count(*), 0, count(*) filter (where status = 'sent'), 0,
         count(*) filter (where status = 'hardfail'), count(*) filter (where status = 'bounced'), 0
  from emails, (values ('second', interval '1 second'), ('15min', interval '15 minutes'), ('day', interval '1 day')) as spans (span, width)
  group by grouping sets ((tenant_id, span, date_bin(width, accepted_at, '2001-01-01')), (span, date_bin(width, accepted_at, '2001-01-01')))`

/** The tenant with half of the emails. */
export const largeTenant = `t${'1'.padStart(23, '0')}`

export async function fillMillion(db: Db, emails: number, note: (text: string) => void): Promise<void> {
  const firstMs = Date.now() - days * dayMs
  await ensurePartitions(db, emailTables, firstMs, days)
  await db.run(addTenants, [new Date(firstMs), tenants])
  for (let done = 0; done < emails; done += batch) {
    const nths = Array.from({ length: batch }, (_, n) => done + n)
    const times = nths.map((nth) => firstMs + Math.floor((nth / emails) * days * dayMs))
    const ids = nths.map((nth, n) => `${emailIdPrefix(times[n] as number)}${String(nth).padStart(14, '0')}`)
    const owners = nths.map((nth) => (nth % 2 === 0 ? largeTenant : `t${String((nth % tenants) + 1).padStart(23, '0')}`))
    await db.run(addEmails, [owners, ids, nths, times.map((ms) => new Date(ms))])
    if (done % 200_000 === 0) note(`  ${done + batch} emails`)
  }
  await db.run(countEmails)
  // Separately: several statements at once form a transaction, in which VACUUM is refused.
  for (const table of ['emails', 'email_counts']) await db.script(`vacuum analyze ${table}`)
}
