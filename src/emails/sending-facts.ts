/** The way that emails were sent, for counts by sending domain, egress source and provider. */
import { type Queryable, sql } from '#db'
import { erasedAddress } from './erase.ts'

export interface SendingFacts {
  /** The index in the request. */
  nth: number
  senderDomain: string
  recipientDomain: string
  test: boolean
  /** Of the attempt; null: the operating system chose the address, or the attempt is not known. */
  source: string | null
  transport: string | null
  remoteHost: string | null
}

export interface WantedAttempt {
  tenantId: string
  emailId: string
  /** The time of the attempt; null: the last one that delivered the email, or may have. */
  at: Date | null
}

/** Each by index: a plan for many emails at once must not read whole days. */
const factsAmong = sql<SendingFacts>`
  select wanted.nth, lower(split_part(email.sender, '@', -1)) as "senderDomain", lower(split_part(email.recipient, '@', -1)) as "recipientDomain",
    email.test, attempt.source, attempt.transport, attempt.remote_host as "remoteHost"
  from unnest($1::text[], $2::text[], $3::timestamptz[]) with ordinality as wanted (tenant_id, id, attempted_at, nth)
  cross join lateral (
    select sender, recipient, test
    from emails
    where emails.tenant_id = wanted.tenant_id and emails.id = wanted.id and sender <> $4
    limit 1
  ) as email
  left join lateral (
    select source, transport, remote_host
    from attempts
    where attempts.tenant_id = wanted.tenant_id and attempts.email_id = wanted.id
      and case when wanted.attempted_at is null then status = 'sent' or outcome_unknown else at = wanted.attempted_at end
    order by attempts.id desc
    limit 1
  ) as attempt on true`

/** Of the emails that still exist and name their sender, by index. */
export async function findSendingFacts(on: Queryable, wanted: readonly WantedAttempt[]): Promise<Map<number, SendingFacts>> {
  if (wanted.length === 0) return new Map()
  const rows = await on.rows(factsAmong, [
    wanted.map((one) => one.tenantId),
    wanted.map((one) => one.emailId),
    wanted.map((one) => one.at),
    erasedAddress,
  ])
  return new Map(rows.map((row) => [row.nth - 1, row]))
}
