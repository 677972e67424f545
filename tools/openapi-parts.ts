/**
 * Moves repeated parts of the OpenAPI document into `components`: headers, the error schema, and the bodies and answers shared by both path
 * families.
 */

interface Schema {
  properties?: Record<string, Schema>
  enum?: string[]
  [keyword: string]: unknown
}
interface Answer {
  headers?: Record<string, object>
  content?: Record<string, { schema: Schema }>
}
interface Operation {
  operationId: string
  requestBody?: object
  responses: Record<string, Answer | Ref>
}
interface Ref {
  $ref: string
}
export interface Document {
  components: Record<string, Record<string, object>>
  paths: Record<string, Record<string, Operation>>
}

const ref = (kind: string, name: string): Ref => ({ $ref: `#/components/${kind}/${name}` })

/** Changes the document in place. `failure` describes every refusal; an operation only lists its own codes. */
export function shareParts(document: Document, failure: object): void {
  const { components } = document
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  const headers: Record<string, object> = {}
  components.headers = headers
  components.schemas = { ...components.schemas, Failure: failure }

  for (const operation of operations) {
    for (const answer of Object.values(operation.responses) as Answer[]) {
      for (const [name, header] of Object.entries(answer.headers ?? {})) {
        headers[name] = header
        answer.headers = { ...answer.headers, [name]: ref('headers', name) }
      }
      for (const body of Object.values(answer.content ?? {})) {
        const codes = body.schema.properties?.error?.properties?.code?.enum
        if (codes) body.schema = { allOf: [ref('schemas', 'Failure')], properties: { error: { properties: { code: { enum: codes } } } } }
      }
    }
  }

  const answers = operations.flatMap(({ operationId, responses }) =>
    Object.entries(responses).map(([status, answer]) => ({
      name: `${operationId}.${status}`,
      part: answer,
      put: (it: Ref) => void (responses[status] = it),
    })),
  )
  const bodies = operations.flatMap((operation) =>
    operation.requestBody
      ? [{ name: operation.operationId, part: operation.requestBody, put: (it: Ref) => void (operation.requestBody = it) }]
      : [],
  )
  components.responses = hoist('responses', answers)
  components.requestBodies = hoist('requestBodies', bodies)
}

/** Stores a part that occurs more than once under the name of its first place, and refers to it. */
function hoist(kind: string, places: readonly { name: string; part: object; put(it: Ref): void }[]): Record<string, object> {
  const kept: Record<string, object> = {}
  for (const alike of Map.groupBy(places, ({ part }) => JSON.stringify(part)).values()) {
    const [first] = alike
    if (!first || alike.length < 2) continue
    kept[first.name] = first.part
    for (const place of alike) place.put(ref(kind, first.name))
  }
  return kept
}
