/**
 * Delivery times of emails, for comparison with opens and clicks.
 */
import { hashedPattern } from '#base'
import { type Queryable, sql } from '#db'
import { erasedAddress } from './erase.ts'

interface Delivered {
  tenantId: string
  id: string
  /** When the recipient's server accepted it, or may have; null: no delivery is known. */
  deliveredAt: Date | null
}

/** Each by index: a plan for many emails at once must not read whole days. */
const deliveredAmong = sql<Delivered>`
  select email.tenant_id as "tenantId", email.id, (
      select at
      from attempts
      where attempts.tenant_id = email.tenant_id and attempts.email_id = email.id and (status = 'sent' or outcome_unknown)
      order by attempts.id
      limit 1
    ) as "deliveredAt"
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, id)
  cross join lateral (
    select tenant_id, id
    from emails
    where emails.tenant_id = wanted.tenant_id and emails.id = wanted.id and recipient <> $3 and recipient !~ $4
    limit 1
  ) as email`

/** The given emails that exist and whose recipient was not erased or hashed. */
export const findDeliveryTimes = (on: Queryable, emails: readonly { tenantId: string; id: string }[]): Promise<Delivered[]> =>
  on.rows(deliveredAmong, [emails.map((one) => one.tenantId), emails.map((one) => one.id), erasedAddress, hashedPattern])
