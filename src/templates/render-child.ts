/** The child process that parses and renders templates. */
import { serveTasks } from '#base'
import { parseSource, type Rendered, renderSource, type Source, TemplateProblem } from './liquid.ts'

export interface RenderTask {
  source: Source
  /** null: only parsed. */
  variables: object | null
}

export type RenderResult = { rendered: Rendered | null; spentUs: number } | { problem: string; part: 'subject' | 'html' | 'text' }

serveTasks(({ source, variables }: RenderTask): { result: RenderResult } => {
  try {
    if (variables !== null) return { result: renderSource(source, variables) }
    parseSource(source)
    return { result: { rendered: null, spentUs: 0 } }
  } catch (error) {
    if (error instanceof TemplateProblem) return { result: { problem: error.message, part: error.part } }
    throw error
  }
})
