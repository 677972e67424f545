/**
 * Renders in a child process, so that no template delays other requests, and one that exhausts the heap ends only its own rendering. The
 * child ends a template by its processor time; a task that still does not return is ended with the child.
 */
import { type Clock, openTaskProcess, TaskProcessEnded, TookTooLong, wrongField } from '#base'
import type { Rendered, TemplatePart } from './liquid.ts'
import type { RenderResult, RenderTask } from './render-child.ts'
import type { TemplateSource } from './template-records.ts'

/** Wall time of the parsing and rendering of one message. Only a busy machine needs a part of it. */
const deadlineMs = 1000
const idleMs = 60_000
/** A rendering makes at most 48 MB of values, and three outputs of 5 MB; two parsed texts of 262,144 characters need up to 50 MB. */
const maxHeapMebibytes = 192

export interface Renderer {
  /** Refuses `validation_error`. */
  render(tenantId: string, source: TemplateSource, values: object): Promise<Rendered>
  /** Refuses text that is not a template. */
  check(tenantId: string, source: TemplateSource): Promise<void>
}

export function openRenderer(clock: Clock): Renderer {
  const file = new URL('./render-child.ts', import.meta.url)
  const child = openTaskProcess<RenderTask, RenderResult>(file, { clock, deadlineMs, idleMs, maxHeapMebibytes })

  const run = async (tenantId: string, { subject, html, text }: TemplateSource, variables: object | null): Promise<Rendered | null> => {
    const result = await child.run(tenantId, { source: { subject, html, text }, variables }).catch((error: unknown) => {
      // Also a child that needed more memory than its heap has.
      if (error instanceof TookTooLong || error instanceof TaskProcessEnded) return { problem: 'it takes too long', part: 'html' as const }
      throw error
    })
    if ('problem' in result) throw problem(result.part, result.problem, variables === null)
    return result.rendered
  }
  return {
    async render(tenantId, source, values) {
      const rendered = await run(tenantId, source, values)
      if (!rendered) throw new Error('the child returned no message')
      return rendered
    },
    check: async (tenantId, source) => void (await run(tenantId, source, null)),
  }
}

const undefinedVariable = /^undefined variable: ([\w.[\]"']{1,100})/

/** The values are at fault, or the template. */
function problem(part: TemplatePart, message: string, isDraft: boolean) {
  const missing = undefinedVariable.exec(message)?.[1]
  if (missing !== undefined)
    return wrongField(
      `variables.${missing}`,
      'is required by the template',
      'validation_error',
      'Give the variable, or declare it with a default',
    )
  if (isDraft) return wrongField(part, `is not a template: ${message}`, 'validation_error', 'Correct the tag or filter at this place')
  return wrongField(
    'templateId',
    `names a template that cannot be rendered: ${part}: ${message}`,
    'validation_error',
    'Correct the template',
  )
}
