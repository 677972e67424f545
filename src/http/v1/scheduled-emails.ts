/**
 * POST /emails/{emailId}/cancel, PATCH /emails/{emailId} (extensions of the contract): a scheduled message is cancelled or gets another
 * time, for all its recipients.
 */
import Type, { type Static } from 'typebox'
import type { ScheduledMessage, WithMemory } from '#accept'
import type { Credential } from '#credentials'
import { knownEmailId, scheduledTime, tenantFields, tenantNamedIn, tenantParameter, timesOf } from './common-schemas.ts'
import { route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const Scheduled = Type.Object({
  id: Type.String({ description: 'Id of the email of the first recipient' }),
  tenantId: Type.String(),
  status: Type.Unsafe<'pending' | 'hardfail'>({ type: 'string', enum: ['pending', 'hardfail'] }),
  scheduledAt: Type.String({ format: 'date-time' }),
  cancelledAt: Type.Optional(Type.String({ format: 'date-time' })),
  messages: Type.Unsafe<Record<string, { id: string }>>({
    type: 'object',
    additionalProperties: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    description: 'Email of each recipient; all of them are changed',
  }),
})

const toWire = ({ id, tenantId, emails, ...times }: ScheduledMessage): Static<typeof Scheduled> => ({
  id,
  tenantId,
  status: times.cancelledAt === null ? 'pending' : 'hardfail',
  ...(timesOf(times) as { scheduledAt: string; cancelledAt?: string }),
  messages: Object.fromEntries(emails.map((one) => [one.recipient, { id: one.id }])),
})

const scopeOf = ({ tenantId, credential }: { tenantId: string | null; credential: Credential }) => ({
  tenantId,
  allowedFrom: credential.bounds?.from,
})

const sends = { permission: 'emails:send', scope: 'organisation or tenant', families: 'organisation' } as const

export const cancelEmail = route({
  method: 'POST',
  path: '/emails/{emailId}/cancel',
  name: 'emails.cancel',
  summary: 'Cancel a scheduled email for all its recipients, before it leaves; can be repeated',
  ...sends,
  query: query({ tenantId: tenantParameter }),
  data: Scheduled,
  refuses: ['not_found', 'email_not_scheduled', 'tenant_mismatch'],
  handle: async (call, { accept }) => toWire(await accept.cancel(knownEmailId(call.params.emailId), scopeOf(call))),
})

export const rescheduleEmail = route({
  method: 'PATCH',
  path: '/emails/{emailId}',
  name: 'emails.reschedule',
  summary: 'Reschedule a scheduled email for all its recipients, before it leaves',
  ...sends,
  body: Type.Object({
    scheduledAt: scheduledTime('ISO 8601 with a zone, or Unix seconds; at most 30 days ahead, and at most 60 days after acceptance'),
    ...tenantFields,
  }),
  data: Scheduled,
  refuses: ['not_found', 'email_not_scheduled', 'tenant_mismatch'],
  handle: async (call, { accept, tenants, contents }) => {
    const scope = { ...scopeOf(call), tenantId: await tenantNamedIn(call, tenants) }
    const withMemory: WithMemory = (email, work) => contents.rewrite(email, call.connection, work)
    return toWire(await accept.reschedule(knownEmailId(call.params.emailId), scope, call.body.scheduledAt, withMemory))
  },
})
