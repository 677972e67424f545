/**
 * The message of a send's body: of its fields, of a template, and with the address of a route for replies. Only known fields are passed on:
 * acceptance allows the APIs of other vendors more than a caller of /v1.
 */
import type { Submission } from '#accept'
import type { Routes } from '#received-mail'
import type { Templates } from '#templates'
import { fromTemplate, hasTemplate } from './template-sends.ts'

export type BodyMessage = Omit<Submission, 'from'>

export interface MessageDeps {
  templates: Templates
  routes: Pick<Routes, 'replyAddresses'>
}

/** The message, or how to make it for the tenant, which happens after the idempotency key was looked up. */
export function messageFor(
  body: BodyMessage & { replyRouteId?: string | null | undefined },
  { templates, routes }: MessageDeps,
): BodyMessage | ((tenant: { id: string }) => Promise<BodyMessage>) {
  const { replyRouteId } = body
  const make = hasTemplate(body) ? fromTemplate(body, templates) : undefined
  if (!make && replyRouteId == null) return knownFields(body)
  return async (tenant) => {
    const message = knownFields(make ? await make(tenant) : body)
    return replyRouteId == null ? message : { ...message, replyAddress: await routes.replyAddresses(tenant.id, replyRouteId) }
  }
}

const knownFields = (body: BodyMessage): BodyMessage => ({
  to: body.to,
  cc: body.cc,
  bcc: body.bcc,
  replyTo: body.replyTo,
  subject: body.subject,
  html: body.html,
  text: body.text,
  tag: body.tag,
  headers: body.headers,
  attachments: body.attachments,
  metadata: body.metadata,
  unsubscribe: body.unsubscribe,
  scheduledAt: body.scheduledAt,
})
