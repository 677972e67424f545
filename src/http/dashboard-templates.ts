/**
 * The preview of a template while it is written: its source and values come with the request and are not stored. Once as data, so that the
 * page shows the subject or the fault; once as a page for a frame, as inert as the preview of an email.
 */
import type { FastifyInstance } from 'fastify'
import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import type { Templates, Values } from '#templates'
import type { Tenants } from '#tenants'
import { type DashboardContext, reader } from './dashboard-context.ts'
import type { RenderedTemplateResponse } from './dashboard-responses.ts'
import type { SignedInMember } from './dashboard-session.ts'
import { previewDocument, previewHeaders } from './email-preview.ts'
import { nullable } from './v1/common-schemas.ts'
import { Declared } from './v1/templates.ts'

export interface TemplatePreviewDeps {
  templates: Templates
  tenants: Tenants
}

/** As large as a form may be. */
const maxSourceOctets = 1_048_576
const Part = nullable(Type.String())
const Source = Type.Object({
  subject: Type.String(),
  html: Part,
  text: Part,
  variables: Declared,
  values: Type.Unsafe<Values>({ type: 'object', maxProperties: 1000 }),
})
const readSource = reader(Source)

/** A fault of the source or of its values is a result: its author has not finished. */
function faultOf(error: unknown): Refusal {
  if (error instanceof Refusal && error.code === 'validation_error') return error
  throw error
}

export function serveTemplatePreview(
  api: FastifyInstance,
  { requireMember, answer }: DashboardContext,
  { templates, tenants }: TemplatePreviewDeps,
): void {
  // Previews take turns of their own on the thread that renders, so that the sends of the tenant do not wait for them.
  const rendered = async ({ tenantId }: SignedInMember, { values, ...source }: Static<typeof Source>) =>
    templates.renderSource(`preview ${tenantId ?? (await tenants.default()).id}`, source, values)

  api.post('/templates/render', { bodyLimit: maxSourceOctets }, async (request, reply) => {
    const member = await requireMember(request)
    const result = await rendered(member, readSource(request.body)).catch(faultOf)
    const isFault = result instanceof Refusal
    return answer<RenderedTemplateResponse>(request, reply, {
      subject: isFault ? null : result.subject,
      fault: isFault ? { message: result.message, suggestion: result.suggestion } : null,
    })
  })

  // A form in the page fills the frame: an address would be too short for the source.
  api.post('/templates/preview', { bodyLimit: maxSourceOctets, config: { takesForms: 'params' } }, async (request, reply) => {
    const member = await requireMember(request, 'frame')
    const { html, text } = await rendered(member, readSource(request.body))
    return reply.headers(previewHeaders).send(previewDocument({ ...(html === null ? {} : { htmlBody: html }), plainBody: text ?? '' }))
  })
}
