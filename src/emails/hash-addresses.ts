/** Replaces the recipients of a tenant's old emails by hashes, also in the texts of their attempts, in bounded pages; counts those left. */
import { type AddressHasher, emailIdPrefix, hashedPattern, unhashedPattern } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { erasedAddress } from './erase.ts'

/** `isDue`: final, without a content, and not hashed yet. */
const oldEmails = sql<{ id: string; recipient: string; isDue: boolean }>`
  select id, recipient, status not in ('pending', 'softfail', 'held') and recipient <> $5 and recipient !~ $6
    and not exists (select from contents where contents.tenant_id = emails.tenant_id and contents.id = emails.content_id) as "isDue"
  from emails
  where tenant_id = $1 and id > $2 and id < $3
  order by id
  limit $4`

/** A retry that committed meanwhile keeps its email as it is. The first and the last id leave out the other partitions, here and below. */
const hashRecipients = sql<{ id: string }>`
  update emails
  set recipient = hashed.recipient
  from unnest($2::text[], $3::text[], $4::text[]) as hashed (id, before, recipient)
  where emails.tenant_id = $1 and emails.id between $5 and $6 and emails.id = hashed.id and emails.recipient = hashed.before
    and status not in ('pending', 'softfail', 'held')
  returning emails.id`

const attemptsOf = sql<{ emailId: string; id: number; details: string; output: string }>`
  select email_id as "emailId", id, details, output
  from attempts
  where tenant_id = $1 and email_id between $4 and $5 and email_id = any($2)
    and (conversation is not null or details ~ $3 or output ~ $3)`

/** Recipients of one message share a conversation, which names them all. */
const hashAttempts = sql`
  update attempts
  set details = hashed.details, output = hashed.output, conversation = null
  from unnest($2::text[], $3::bigint[], $4::text[], $5::text[]) as hashed (email_id, id, details, output)
  where attempts.tenant_id = $1 and attempts.email_id between $6 and $7 and attempts.email_id = hashed.email_id and attempts.id = hashed.id`

/**
 * Reads a page of emails after `after` that were accepted before `beforeMs`, and hashes their recipients. `also` does the rest of the same
 * transaction, for the hashed ones.
 */
export async function hashRecipientsOf(
  db: Db,
  hasher: AddressHasher,
  { tenantId, after, beforeMs }: { tenantId: string; after: string; beforeMs: number },
  most: number,
  also: (tx: Tx, emailIds: readonly string[]) => Promise<void>,
): Promise<{ last: string | undefined; isWhole: boolean; changed: number }> {
  const page = await db.rows(oldEmails, [tenantId, after, emailIdPrefix(beforeMs), most, erasedAddress, hashedPattern])
  const due = page.filter(({ isDue }) => isDue)
  const names = due.map(({ recipient }) => recipient)
  const hashed = await db.transaction(async (tx) => {
    if (due.length === 0) return 0
    const bounds = [due[0]?.id, due.at(-1)?.id]
    const hashes = names.map((name) => hasher.hash(name))
    const done = await tx.rows(hashRecipients, [tenantId, due.map(({ id }) => id), names, hashes, ...bounds])
    const emailIds = done.map(({ id }) => id)
    const attempts = await tx.rows(attemptsOf, [tenantId, emailIds, unhashedPattern, ...bounds])
    const texts = (of: 'details' | 'output') => attempts.map((one) => hasher.hashIn(one[of]))
    const ids = [attempts.map(({ emailId }) => emailId), attempts.map(({ id }) => id)]
    if (attempts.length > 0) await tx.run(hashAttempts, [tenantId, ...ids, texts('details'), texts('output'), ...bounds])
    await also(tx, emailIds)
    return done.length
  })
  return { last: page.at(-1)?.id, isWhole: page.length === most, changed: hashed }
}

const recipientsLeft = sql<{ rows: number; oldest: Date | null; hashed: number }>`
  select count(*) filter (where recipient <> $2 and recipient !~ $3)::integer as rows,
    min(accepted_at) filter (where recipient <> $2 and recipient !~ $3) as oldest,
    count(*) filter (where recipient ~ $3)::integer as hashed
  from emails
  where tenant_id = $1`

const attemptsLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from attempts
  where tenant_id = $1 and (conversation is not null or details ~ $2 or output ~ $2)`

const none = { rows: 0, oldest: null }

/** Emails whose recipient is not hashed (and those that are), and attempts whose texts may name an address. */
export const countAddressesLeft = async (on: Queryable, tenantId: string) => ({
  emails: (await on.first(recipientsLeft, [tenantId, erasedAddress, hashedPattern])) ?? { ...none, hashed: 0 },
  attempts: (await on.first(attemptsLeft, [tenantId, unhashedPattern])) ?? none,
})
