/** Tools that change something. Each reads the present state for its plan, and the engine checks the state again when it acts. */
import Type from 'typebox'
import { Refusal } from '#base'
import { domainName, pauseQueue, releaseQueue, resumePaused } from '#delivery'
import { AddressInput, EmailId, expandedEmail, TenantId } from './email-tools.ts'
import { action, facts, fieldsOf, type Tool, type ToolContext } from './tool.ts'

const operator = { permission: 'full access', scope: 'organisation' } as const

async function shortEmail(emailId: string, context: ToolContext) {
  const email = await expandedEmail(emailId, '', context)
  const { quote } = context
  return {
    status: String(email.status),
    shown: {
      email: {
        ...facts(email, ['id', 'tenantId', 'status', 'scheduledAt']),
        untrusted: { to: quote.address(email.to), subject: quote.text(email.subject) },
      },
    },
  }
}

/** The name in the event log. */
const nameOf = ({ caller }: ToolContext) => caller.credential.name

const retryEmail = action({
  name: 'retry_email',
  title: 'Retry an email',
  description: 'Attempts a failed, held or bounced email again, now.',
  input: Type.Object({ emailId: EmailId }),
  async plan({ emailId }, context) {
    const { status, shown } = await shortEmail(emailId, context)
    return {
      plan: `Retry one email, whose status is ${status}: it becomes pending and is attempted now, also if its recipient is suppressed.`,
      facts: shown,
    }
  },
  async perform({ emailId }, { caller }) {
    const { data } = await caller.call('emails.retry', { params: { emailId } })
    return facts(fieldsOf(data), ['id', 'tenantId'])
  },
})

const cancelEmail = action({
  name: 'cancel_scheduled_email',
  title: 'Cancel a scheduled email',
  description: 'Cancels a scheduled email before it leaves, for all recipients of its submission.',
  input: Type.Object({ emailId: EmailId }),
  async plan({ emailId }, context) {
    const { status, shown } = await shortEmail(emailId, context)
    return {
      plan: `Cancel one scheduled email, whose status is ${status}, for all recipients of its submission: it never leaves.`,
      facts: shown,
    }
  },
  async perform({ emailId }, { caller }) {
    const { data } = await caller.call('emails.cancel', { params: { emailId } })
    return facts(fieldsOf(data), ['id', 'tenantId', 'status', 'cancelledAt'])
  },
})

const removeSuppression = action({
  name: 'remove_suppression',
  title: 'Remove a suppression',
  description: 'Removes an address from the suppression list of the tenant or, without a tenant, of the organisation.',
  input: Type.Object({ address: AddressInput, tenantId: TenantId }),
  async plan({ address, tenantId }, { caller, quote }) {
    const { data } = await caller.call('suppressions.retrieve', { params: { email: address }, query: { tenantId } })
    const found = fieldsOf(data)
    if (found.suppressed !== true)
      throw new Refusal('not_found', {
        message: 'the address is not on this list',
        suggestion: 'Call list_suppressions to find the list, and give its tenantId',
      })
    return {
      plan: 'Remove one address from the suppression list: it receives mail again. After a complaint or a hard bounce, this can harm the reputation of the sender.',
      facts: {
        suppression: {
          ...facts(found, ['createdAt']),
          untrusted: { address: quote.address(found.address), reason: quote.text(found.reason) },
        },
      },
    }
  },
  async perform({ address, tenantId }, { caller }) {
    await caller.call('suppressions.delete', { params: { email: address }, query: { tenantId } })
    return { removed: true }
  },
})

const Id = Type.String({ minLength: 1, maxLength: 64 })

const replayDelivery = action({
  name: 'replay_webhook_delivery',
  title: 'Replay a request to a webhook',
  description: 'Sends the payload of one recorded request to its webhook again, once. failing_webhooks has the ids.',
  input: Type.Object({ webhookId: Id, deliveryId: Id }),
  async plan(params, { caller, quote }) {
    const { data } = await caller.call('webhooks.retrieveDelivery', { params })
    const found = fieldsOf(data)
    const response = fieldsOf(found.response)
    return {
      plan: 'Send one recorded event to its webhook again, now. The receiver gets it with the same id.',
      facts: {
        delivery: {
          ...facts(found, ['id', 'webhookId', 'tenantId', 'event', 'attempt', 'success', 'statusCode', 'timestamp']),
          untrusted: { url: quote.text(found.url), response: quote.text(response.body), error: quote.text(response.error) },
        },
      },
    }
  },
  async perform(params, { caller }) {
    const { data } = await caller.call('webhooks.replayDelivery', { params })
    return facts(fieldsOf(data), ['success', 'statusCode', 'newDeliveryId', 'timestamp'])
  },
})

const releaseEmail = action({
  name: 'release_held_email',
  title: 'Release a held email',
  description:
    'Returns a held email to the queue. If its recipient is still suppressed or its tenant paused, it is held again. Needs a key of the organisation.',
  input: Type.Object({ emailId: EmailId }),
  async plan({ emailId }, context) {
    context.caller.require(operator)
    const { status, shown } = await shortEmail(emailId, context)
    return { plan: `Release one email, whose status is ${status}. Only a held email changes.`, facts: shown }
  },
  async perform({ emailId }, context) {
    context.caller.require(operator)
    return { released: await releaseQueue(context.db, { emailId }, context.clock.nowMs(), nameOf(context)) }
  },
})

const Destination = Type.String({ minLength: 1, maxLength: 255, description: 'Recipient domain, such as example.com' })

const placeOf = (destination: string) => ({ tenantId: '', kind: 'destination' as const, name: domainName('destination', destination) })

const pauseDestination = action({
  name: 'pause_queue',
  title: 'Pause mail to a recipient domain',
  description: 'Keeps the mail of all tenants to one recipient domain in the queue until resume_queue. Needs a key of the organisation.',
  input: Type.Object({ destination: Destination, reason: Type.Optional(Type.String({ maxLength: 200 })) }),
  async plan({ destination, reason }, { caller, quote }) {
    caller.require(operator)
    return {
      plan: 'Pause all mail to one recipient domain: it stays queued until it is resumed. Mail in flight is still sent.',
      facts: { untrusted: { destination: quote.text(placeOf(destination).name), reason: quote.text(reason) } },
    }
  },
  async perform({ destination, reason }, context) {
    context.caller.require(operator)
    await pauseQueue(context.db, placeOf(destination), reason ?? 'paused by an agent', context.clock.nowMs(), nameOf(context))
    return { paused: true }
  },
})

const resumeDestination = action({
  name: 'resume_queue',
  title: 'Resume mail to a recipient domain',
  description: 'Ends the pause of one recipient domain. Needs a key of the organisation.',
  input: Type.Object({ destination: Destination }),
  async plan({ destination }, { caller, quote }) {
    caller.require(operator)
    return {
      plan: 'Resume the mail to one recipient domain: the mail that waits is attempted.',
      facts: { untrusted: { destination: quote.text(placeOf(destination).name) } },
    }
  },
  async perform({ destination }, context) {
    context.caller.require(operator)
    return { resumed: await resumePaused(context.db, placeOf(destination), context.clock.nowMs(), nameOf(context)) }
  },
})

export const actTools: readonly Tool[] = [
  retryEmail,
  cancelEmail,
  removeSuppression,
  replayDelivery,
  releaseEmail,
  pauseDestination,
  resumeDestination,
]
