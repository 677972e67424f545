/** Generates docs/api-coverage.md: the contract's endpoints compared with those in the OpenAPI document. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Listed {
  method: string
  path: string
  who: string
  section: string
}

interface Operation {
  operationId: string
  description: string
}

export interface ServedDocument {
  paths: Record<string, Record<string, Operation>>
}

export function readContractEndpoints(): Listed[] {
  return readFileSync(join(import.meta.dirname, 'contract-endpoints.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [target = '', who = '', section = ''] = line.split(' | ')
      const [method = '', path = ''] = target.split(' ')
      return { method, path, who, section }
    })
}

/** Parameter names may differ. */
const formOf = (method: string, path: string) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}')}`

export function missingEndpoints(listed: readonly Listed[], { paths }: ServedDocument): string[] {
  const served = new Set(Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((one) => formOf(one, path))))
  return listed.filter(({ method, path }) => !served.has(formOf(method, `/v1${path}`))).map(({ method, path }) => `${method} ${path}`)
}

export function coverageDocument(listed: readonly Listed[], document: ServedDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ form: formOf(method, path), method, path, operation })),
  )
  const missing = missingEndpoints(listed, document)
  const known = new Set(listed.map(({ method, path }) => formOf(method, `/v1${path}`)))
  const rows = listed.map(({ method, path, who, section }, index) => {
    const served = operations.find(({ form }) => form === formOf(method, `/v1${path}`))
    const shown = served ? `\`${served.operation.operationId}\` | ${served.operation.description}` : '**missing** | '
    return `| ${index + 1} | ${method} | \`${path}\` | ${section} | ${who} | ${shown} |`
  })
  const ours = operations
    .filter(({ form }) => !known.has(form))
    .map(
      ({ method, path, operation }) =>
        `| ${method.toUpperCase()} | \`${path.slice(3)}\` | \`${operation.operationId}\` | ${operation.description} |`,
    )
  return [
    '# API coverage',
    '',
    'This page lists every endpoint of the contract and its operation in the OpenAPI document. `npm run golden` generates it from that document and',
    '`tools/contract-endpoints.txt`. Each response of these endpoints in a test is checked against the document (`test/support/openapi-check.ts`).',
    '',
    `${listed.length - missing.length} of ${listed.length} endpoints of the contract are implemented.`,
    '',
    '| # | method | path below /v1 | section | known to | operation | who may call |',
    '|---|---|---|---|---|---|---|',
    ...rows,
    '',
    ...(ours.length > 0
      ? [
          'Endpoints that the contract does not list:',
          '',
          '| method | path below /v1 | operation | who may call |',
          '|---|---|---|---|',
          ...ours,
          '',
        ]
      : []),
  ].join('\n')
}
