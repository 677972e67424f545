/**
 * Golden files in docs/generated/, generated from the program itself. `node tools/golden.ts` compares them and lists those that differ,
 * with the first differing line; `--write` regenerates them. A document whose module does not exist yet is skipped with a message.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { refusals, settings } from '#base'
import { coverageDocument, readContractEndpoints, type ServedDocument } from './api-coverage.ts'
import { type ApiDocument, clientApi } from './generate-client.ts'
import { llmsDocument } from './llms.ts'
import { modulesDocument, readModuleHeaders } from './module-headers.ts'
import { openApiDocument } from './openapi.ts'
import { commandsDocument, configDocument, errorsDocument } from './reference-pages.ts'
import { type Query, schemaDocument } from './schema-document.ts'
import { readSource } from './source-files.ts'

const folder = 'docs/generated'

/** The source of a document does not exist yet. */
class NotYet extends Error {}

interface Golden {
  file: string
  make: () => Promise<string>
}

/** Calls `name()` of a module's public interface. */
async function callModule(root: string, module: string, name: string): Promise<unknown> {
  const path = join(root, `src/${module}/${module}.ts`)
  if (!existsSync(path)) throw new NotYet(`there is no module ${module} yet`)
  const exported = await loadModule(path)
  const found = exported[name]
  if (typeof found !== 'function') throw new NotYet(`#${module} has no ${name}() yet`)
  return (found as () => unknown)()
}

async function loadModule(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') throw new NotYet(error.message)
    throw error
  }
}

/** The scratch database of #db: embedded and fully migrated; `close` removes it. */
interface ScratchDatabase {
  query: Query
  close(): Promise<void>
}

async function schemaOf(root: string): Promise<string> {
  const scratch = (await callModule(root, 'db', 'openScratchDatabase')) as ScratchDatabase
  try {
    return await schemaDocument((text) => scratch.query(text))
  } finally {
    await scratch.close()
  }
}

function llmsOf(root: string): string {
  const path = join(root, 'docs/index.md')
  if (!existsSync(path)) throw new NotYet('there is no docs/index.md yet')
  return llmsDocument(readFileSync(path, 'utf8'))
}

const clientOf = async () => clientApi((await openApiDocument()) as ApiDocument)

function goldens(root: string): Golden[] {
  return [
    { file: 'errors.md', make: async () => errorsDocument(refusals) },
    { file: 'config.md', make: async () => configDocument(settings) },
    {
      file: 'modules.md',
      make: async () => {
        const moduleList = await import('../modules.config.mjs')
        return modulesDocument(moduleList, readModuleHeaders(moduleList, readSource(root)).headers)
      },
    },
    { file: '../remote-misbehaviour.md', make: async () => (await import('../test/faults/remote/misbehaviours-document.ts')).document() },
    { file: 'llms.txt', make: async () => llmsOf(root) },
    { file: 'schema.sql', make: () => schemaOf(root) },
    { file: 'openapi.json', make: async () => `${JSON.stringify(await openApiDocument(), null, 2)}\n` },
    { file: '../../packages/client/src/generated-types.ts', make: async () => (await clientOf()).types },
    { file: '../../packages/client/src/generated.ts', make: async () => (await clientOf()).methods },
    {
      file: '../api-coverage.md',
      make: async () => coverageDocument(readContractEndpoints(), (await openApiDocument()) as ServedDocument),
    },
    {
      file: 'cli.md',
      make: async () => commandsDocument((await callModule(root, 'cli', 'commandsHelp')) as { name: string; help: string }[]),
    },
  ]
}

/** The first difference of two texts, for the check's output. */
export function firstDifference(old: string, fresh: string): string {
  const oldLines = old.split('\n')
  const freshLines = fresh.split('\n')
  const at = freshLines.findIndex((line, index) => line !== oldLines[index])
  const line = at === -1 ? freshLines.length : at
  return `line ${line + 1}\n  - ${oldLines[line] ?? '(end)'}\n  + ${freshLines[line] ?? '(end)'}`
}

export async function compareGoldens(root: string, write: boolean): Promise<{ lines: string[]; differ: boolean }> {
  const lines: string[] = []
  let differ = false
  for (const { file, make } of goldens(root)) {
    const fresh = await make().catch((error: unknown) => {
      if (error instanceof NotYet) return error
      throw error
    })
    const path = join(root, folder, file)
    const old = existsSync(path) ? readFileSync(path, 'utf8') : undefined
    if (fresh instanceof NotYet) {
      if (old !== undefined) differ = true
      lines.push(old === undefined ? `${file} skipped: ${fresh.message}` : `${file} exists, but cannot be made: ${fresh.message}`)
    } else if (fresh === old) continue
    else if (write) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, fresh)
      lines.push(`${file} written`)
    } else {
      differ = true
      lines.push(old === undefined ? `${file} is missing` : `${file} differs at ${firstDifference(old, fresh)}`)
    }
  }
  if (differ) lines.push('run "npm run golden" and read the difference before committing it')
  return { lines, differ }
}

if (import.meta.main) {
  const { lines, differ } = await compareGoldens(process.cwd(), process.argv.includes('--write'))
  for (const line of lines) console.log(line)
  process.exitCode = differ ? 1 : 0
}
