/** Changes of the statuses of emails, each in the transaction that has their cause. */
import { sql, type Tx } from '#db'
import type { Email } from './email-record.ts'
import { keysByDay, these } from './erase.ts'
import type { EmailStatus } from './status-transitions.ts'

const setStatus = sql`
  update emails
  set status = $3
  where tenant_id = $1 and id = $2 and status = any($4)`

const setStatuses = sql`
  update emails
  set status = $5
  where ${these} and status = any($6)`

/** Changes the status if it is one of `from`; otherwise returns false. */
export async function changeStatus(
  tx: Tx,
  email: Pick<Email, 'tenantId' | 'id'>,
  from: readonly EmailStatus[],
  to: EmailStatus,
): Promise<boolean> {
  return (await tx.run(setStatus, [email.tenantId, email.id, to, from])) === 1
}

/** Changes the statuses that are one of `from`, in few statements: a transaction that has written stops the readers of the event log. */
export async function changeStatuses(
  tx: Tx,
  emails: readonly { tenantId: string; emailId: string }[],
  from: readonly EmailStatus[],
  to: EmailStatus,
): Promise<void> {
  const keys = keysByDay(emails.map(({ tenantId, emailId }) => ({ tenantId, id: emailId })))
  for (const ofDay of keys) await tx.run(setStatuses, [...ofDay, to, from])
}
