/** Templates (an extension of the contract): drafts, published versions, previews and test sends. `templateId` is an id or a name. */
import Type, { type Static } from 'typebox'
import { wrongField } from '#base'
import { type ListedVersion, type Template, type TemplateSource, type TemplateSummary, type Variable, variableTypes } from '#templates'
import { bodyTenantOrDefault, nullable, pageFields, tenantFields, tenantOrDefault, tenantParameter } from './common-schemas.ts'
import { listRoute, route, sendRoute } from './define-endpoint.ts'
import { query } from './query-parameters.ts'
import { callerOf, FromField, messageFields, responseFor, SentEmail, sendRefusals, sentToWire } from './send-emails.ts'
import { templateFields, valuesOf } from './template-sends.ts'

const reads = { permission: 'emails:send', scope: 'organisation or tenant', families: 'both' } as const
const manages = { ...reads, permission: 'full access' } as const

const maxSourceLength = 262_144
/** The texts with every character escaped. */
const sourceBodyLimit = 4_194_304

const Name = Type.String({ minLength: 1, maxLength: 64, pattern: '^[a-z][a-z0-9-]{0,63}$', description: 'Unique within the tenant' })
const Subject = Type.String({ minLength: 1, maxLength: 998, description: 'Liquid, without HTML escaping' })
const Html = nullable(Type.String({ maxLength: maxSourceLength, description: 'Liquid; values are escaped unless the template says raw' }))
const Text = nullable(Type.String({ maxLength: maxSourceLength, description: 'Liquid; null: generated from html' }))
export const Declared = Type.Unsafe<Record<string, Variable>>({
  type: 'object',
  maxProperties: 100,
  additionalProperties: {
    type: 'object',
    properties: { type: { type: 'string', enum: variableTypes }, default: {} },
    required: ['type'],
  },
  description: 'Type and default of each variable; a send must give those without a default',
  examples: [{ name: { type: 'string' }, items: { type: 'array', default: [] } }],
})

const summary = {
  id: Type.String(),
  tenantId: Type.String(),
  name: Type.String(),
  subject: Type.String({ description: 'Of the draft' }),
  publishedVersion: nullable(Type.Integer({ description: 'null: only a draft' })),
  createdAt: Type.String({ format: 'date-time' }),
  updatedAt: Type.String({ format: 'date-time' }),
}
const source = { html: Html, text: Text, variables: Declared }
const TemplateObject = Type.Object({ ...summary, ...source })
const VersionObject = Type.Object({
  version: Type.Integer(),
  publishedAt: Type.String({ format: 'date-time' }),
  subject: Type.String(),
  ...source,
  truncated: Type.Boolean({
    description:
      'true: the page has 4,000,000 characters before this version, which lacks html, text and variables. Set perPage to a lower number',
  }),
})

const byKey = { query: query({ tenantId: tenantParameter }), refuses: ['not_found', 'tenant_mismatch'] } as const

export const createTemplate = route({
  method: 'POST',
  path: '/templates',
  name: 'templates.create',
  summary: 'Create a template with a draft',
  ...manages,
  body: Type.Object({
    name: Name,
    subject: Subject,
    html: Type.Optional(Html),
    text: Type.Optional(Text),
    variables: Type.Optional(nullable(Declared)),
    ...tenantFields,
  }),
  bodyLimit: sourceBodyLimit,
  status: 201,
  data: TemplateObject,
  refuses: ['tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { name, subject, html, text, variables } = call.body
    const draft = { subject, html: html ?? null, text: text ?? null, variables: variables ?? {} }
    return templateToWire(await deps.templates.create(await bodyTenantOrDefault(call, deps), name, draft))
  },
})

export const listTemplatesRoute = listRoute({
  method: 'GET',
  path: '/templates',
  name: 'templates.list',
  summary: "List a tenant's templates by name, without their texts",
  ...reads,
  query: query({ ...pageFields, tenantId: tenantParameter }),
  data: Type.Object(summary),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { page, perPage } = call.query
    const { templates, total } = await deps.templates.list(await tenantOrDefault(call, deps), { number: page, size: perPage })
    return { items: templates.map(summaryToWire), page, perPage, total }
  },
})

export const retrieveTemplate = route({
  method: 'GET',
  path: '/templates/{templateId}',
  name: 'templates.retrieve',
  summary: 'Get a template with its draft',
  ...reads,
  ...byKey,
  data: TemplateObject,
  handle: async (call, deps) => templateToWire(await deps.templates.get(await tenantOrDefault(call, deps), call.params.templateId)),
})

export const updateTemplate = route({
  method: 'PATCH',
  path: '/templates/{templateId}',
  name: 'templates.update',
  summary: 'Change the draft of a template; sends use the published version until the draft is published',
  ...manages,
  ...byKey,
  body: Type.Object({
    name: Type.Optional(Name),
    subject: Type.Optional(Subject),
    html: Type.Optional(Html),
    text: Type.Optional(Text),
    variables: Type.Optional(Declared),
    ...tenantFields,
  }),
  bodyLimit: sourceBodyLimit,
  data: TemplateObject,
  handle: async (call, deps) => {
    const { name, subject, html, text, variables } = call.body
    const changes = { name, subject, html, text, variables }
    return templateToWire(await deps.templates.update(await bodyTenantOrDefault(call, deps), call.params.templateId, changes))
  },
})

export const publishTemplate = route({
  method: 'POST',
  path: '/templates/{templateId}/publish',
  name: 'templates.publish',
  summary: 'Publish the draft of a template as its next version',
  ...manages,
  ...byKey,
  data: TemplateObject,
  handle: async (call, deps) => templateToWire(await deps.templates.publish(await tenantOrDefault(call, deps), call.params.templateId)),
})

export const listTemplateVersions = listRoute({
  method: 'GET',
  path: '/templates/{templateId}/versions',
  name: 'templates.listVersions',
  summary: 'List the published versions of a template, newest first',
  ...reads,
  ...byKey,
  query: query({ ...pageFields, tenantId: tenantParameter }),
  data: VersionObject,
  handle: async (call, deps) => {
    const { page, perPage } = call.query
    const shown = { number: page, size: perPage }
    const { versions, total } = await deps.templates.listVersions(await tenantOrDefault(call, deps), call.params.templateId, shown)
    return { items: versions.map(versionToWire), page, perPage, total }
  },
})

const { templateVersion, variables } = templateFields
const rendering = { templateVersion, variables, ...tenantFields }

export const previewTemplate = route({
  method: 'POST',
  path: '/templates/{templateId}/preview',
  name: 'templates.preview',
  summary: 'Render the draft of a template, or a version, without sending it',
  ...reads,
  ...byKey,
  body: Type.Object(rendering),
  data: Type.Object({ subject: Type.String(), html: nullable(Type.String()), text: nullable(Type.String()) }),
  handle: async (call, deps) => deps.templates.preview(await bodyTenantOrDefault(call, deps), call.params.templateId, valuesOf(call.body)),
})

export const testTemplate = sendRoute({
  method: 'POST',
  path: '/templates/{templateId}/test',
  name: 'templates.test',
  summary: 'Send one email with the draft of a template, or a version',
  ...reads,
  body: Type.Object({ from: FromField, to: messageFields.to, ...rendering }),
  data: SentEmail,
  refuses: [...sendRefusals, 'sandbox_recipient_not_allowed', 'sandbox_limit_exceeded'],
  handle: async (call, deps) => {
    const { templateId } = call.params
    const { from, to } = call.body
    if (to.length > 5) throw wrongField('to', 'has more than 5 addresses: a test is for a few readers')
    const make = async (tenant: { id: string }) => ({
      from,
      to,
      ...(await deps.templates.preview(tenant.id, templateId, valuesOf(call.body))),
    })
    const response = responseFor(call, `/v1/templates/${templateId}/test`, sentToWire)
    return deps.accept.send(await bodyTenantOrDefault(call, deps), make, callerOf(call.credential), response)
  },
})

export const deleteTemplateRoute = route({
  method: 'DELETE',
  path: '/templates/{templateId}',
  name: 'templates.delete',
  summary: 'Delete a template with its versions',
  ...manages,
  ...byKey,
  data: Type.Object({ deleted: Type.Unsafe<true>({ type: 'boolean', enum: [true] }) }),
  handle: async (call, deps) => {
    await deps.templates.remove(await tenantOrDefault(call, deps), call.params.templateId)
    return { deleted: true as const }
  },
})

const summaryToWire = ({ id, tenantId, name, subject, publishedVersion, createdAt, updatedAt }: TemplateSummary) => ({
  id,
  tenantId,
  name,
  subject,
  publishedVersion,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
})

const sourceToWire = ({ html, text, variables }: TemplateSource) => ({ html, text, variables })

const templateToWire = (one: Template): Static<typeof TemplateObject> => ({ ...summaryToWire(one), ...sourceToWire(one) })

const versionToWire = (one: ListedVersion): Static<typeof VersionObject> => ({
  version: one.version,
  publishedAt: one.publishedAt.toISOString(),
  subject: one.subject,
  ...sourceToWire(one),
  truncated: one.truncated,
})
