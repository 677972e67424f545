/**
 * The preview of a template while it is written: its source and values come with the request and are not stored. Once as data, so that the
 * page shows the subject or the fault, and once as a page for a frame, as inert as the preview of an email.
 */
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { Templates, TemplateSource, Values } from '#templates'
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
const readSource = reader(
  Type.Object({
    subject: Type.String(),
    html: Part,
    text: Part,
    variables: Declared,
    values: Type.Unsafe<Values>({ type: 'object', maxProperties: 1000 }),
  }),
)

export function serveTemplatePreview(
  api: FastifyInstance,
  { requireMember, answer }: DashboardContext,
  { templates, tenants }: TemplatePreviewDeps,
): void {
  // The tenant only takes its turn on the thread that renders.
  const rendered = async ({ tenantId }: SignedInMember, body: unknown) => {
    const { values, ...source } = readSource(body)
    return templates.renderSource(tenantId ?? (await tenants.default()).id, source satisfies TemplateSource, values)
  }

  api.post('/templates/render', { bodyLimit: maxSourceOctets }, async (request, reply) => {
    const member = await requireMember(request)
    return answer<RenderedTemplateResponse>(request, reply, await rendered(member, request.body))
  })

  // A form in the page fills the frame: an address would be too short for the source.
  api.post('/templates/preview', { bodyLimit: maxSourceOctets, config: { takesForms: 'params' } }, async (request, reply) => {
    const member = await requireMember(request, 'frame')
    const { html, text } = await rendered(member, request.body)
    return reply.headers(previewHeaders).send(previewDocument({ ...(html === null ? {} : { htmlBody: html }), plainBody: text ?? '' }))
  })
}
