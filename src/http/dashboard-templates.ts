/** A template's HTML in a frame of the dashboard: rendered with the values of the query, as inert as the preview of an email. */
import type { FastifyInstance } from 'fastify'
import { Refusal } from '#base'
import type { RateLimiter } from '#limits'
import type { DashboardContext } from './dashboard-context.ts'
import { previewDocument, previewHeaders } from './email-preview.ts'
import type { ApiDeps } from './v1/define-endpoint.ts'
import { previewTemplate } from './v1/templates.ts'

export interface TemplatePreviewDeps extends ApiDeps {
  rateLimiter: RateLimiter
}

export function serveTemplatePreview(api: FastifyInstance, { requireMember }: DashboardContext, deps: TemplatePreviewDeps): void {
  api.get('/templates/:templateId/preview', async (request, reply) => {
    const member = await requireMember(request, 'frame')
    const { variables, tenantId } = request.query as { variables?: unknown; tenantId?: unknown }
    const { body } = await previewTemplate.respond(
      {
        requestId: request.id,
        params: request.params,
        query: {},
        body: { variables: valuesIn(variables) },
        credential: member,
        tenantId: member.tenantId ?? (typeof tenantId === 'string' && tenantId !== '' ? tenantId : null),
        rate: deps.rateLimiter('preview', null),
        idempotencyKey: undefined,
        accept: undefined,
        lastEventId: undefined,
      },
      deps,
    )
    const { html, text } = (JSON.parse(body as string) as { data: { html: string | null; text: string | null } }).data
    return reply.headers(previewHeaders).send(previewDocument({ ...(html === null ? {} : { htmlBody: html }), plainBody: text ?? '' }))
  })
}

function valuesIn(text: unknown): unknown {
  if (typeof text !== 'string' || text === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('validation_error', { field: 'variables', message: 'variables must be a JSON object' })
  }
}
