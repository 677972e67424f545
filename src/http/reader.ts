/** Reads the body of one of the dashboard's own endpoints by its schema; refuses what is not of that form. */
import type { Static, TSchema } from 'typebox'
import { refusalOf, shapeOf } from './v1/shape.ts'

export function reader<Schema extends TSchema>(schema: Schema): (body: unknown) => Static<Schema> {
  const problemsOf = shapeOf(schema)
  return (body) => {
    const problems = problemsOf(body)
    if (problems.length > 0) throw refusalOf(problems)
    return body as Static<Schema>
  }
}
