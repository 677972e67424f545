/** The fields of a send with a template, and the message that they make: rendered for the tenant, after the idempotency key was looked up. */
import Type from 'typebox'
import { type Refusal, wrongField } from '#base'
import type { Templates } from '#templates'
import { optional } from './common-schemas.ts'

export const templateFields = {
  templateId: Type.String({ minLength: 1, maxLength: 64, description: 'Id or name of a template, instead of subject, html and text' }),
  templateVersion: optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'Absent: the published version' })),
  variables: optional(
    Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      maxProperties: 200,
      additionalProperties: {},
      description: 'Values of the variables of the template; at most 256 KiB',
    }),
  ),
}

interface TemplateSend {
  templateId: string
  templateVersion?: number | null
  variables?: Record<string, unknown> | null
}

export const valuesOf = ({ templateVersion, variables }: Omit<TemplateSend, 'templateId'>) => ({
  version: templateVersion ?? undefined,
  values: variables ?? {},
})

/** Whether the body of a send names a template. */
export const hasTemplate = (body: object): body is TemplateSend => (body as { templateId?: unknown }).templateId != null

/** The refusal of fields that only a template uses, in a body without one. `place`: before their names, such as `emails[0].`. */
export function refusalWithoutTemplate(body: object, place = ''): Refusal | undefined {
  const name = (['templateVersion', 'variables'] as const).find((one) => (body as { [Name in typeof one]?: unknown })[one] != null)
  if (name === undefined) return undefined
  return wrongField(`${place}${name}`, 'needs templateId', 'validation_error', `Name a template in templateId, or omit ${name}`)
}

/** How to make the message of a send with a template. Refuses `subject`, `html` and `text` beside it. */
export function fromTemplate<Body extends TemplateSend>(body: Body, templates: Templates) {
  const beside = (['subject', 'html', 'text'] as const).filter((name) => (body as { [Name in typeof name]?: unknown })[name] != null)
  if (beside.length > 0)
    throw wrongField(
      'templateId',
      `cannot be given with ${beside.join(', ')}`,
      'validation_error',
      `Omit ${beside.join(', ')}, or send without templateId`,
    )
  return async (tenant: { id: string }) => ({ ...body, ...(await templates.render(tenant.id, body.templateId, valuesOf(body))) })
}
