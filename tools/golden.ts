/**
 * The goldens in docs/generated/: documents made from the program itself. `node tools/golden.ts` compares and names those that
 * differ, with the first line that does; `--write` makes them anew. A document whose room is not written yet is skipped, aloud.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { refusals, settings } from '#base'
import { commandsDocument, configDocument, errorsDocument } from './documents.ts'
import { houseDocument, readFaces } from './faces.ts'
import { withMigratedDatabase } from './migrated.ts'
import { schemaDocument } from './schema.ts'
import { readSource } from './source.ts'

const folder = 'docs/generated'

interface Golden {
  file: string
  /** Undefined when what it is made from does not exist yet. */
  make: () => Promise<string | undefined>
}

/** The named function of a room's face, or undefined while the room or the function is not written. */
async function faceFunction(root: string, room: string, name: string): Promise<(() => unknown) | undefined> {
  const path = join(root, `src/${room}/${room}.ts`)
  if (!existsSync(path)) return undefined
  const face: Record<string, unknown> = await import(pathToFileURL(path).href)
  const found = face[name]
  return typeof found === 'function' ? () => (found as () => unknown)() : undefined
}

function goldens(root: string): Golden[] {
  return [
    { file: 'errors.md', make: async () => errorsDocument(refusals) },
    { file: 'config.md', make: async () => configDocument(settings) },
    {
      file: 'house.md',
      make: async () => {
        const house = await import('../house.config.mjs')
        return houseDocument(house, readFaces(house, readSource(root)).faces)
      },
    },
    { file: 'schema.sql', make: () => withMigratedDatabase(root, schemaDocument) },
    {
      file: 'openapi.json',
      make: async () => {
        const document = await (await faceFunction(root, 'http', 'openApiDocument'))?.()
        return document === undefined ? undefined : `${JSON.stringify(document, null, 2)}\n`
      },
    },
    {
      file: 'cli.md',
      make: async () => {
        const commands = await (await faceFunction(root, 'cli', 'commandsHelp'))?.()
        return commands === undefined ? undefined : commandsDocument(commands as { name: string; help: string }[])
      },
    },
  ]
}

/** Where two texts first differ, for a reader of the check's output. */
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
    const fresh = await make()
    const path = join(root, folder, file)
    const old = existsSync(path) ? readFileSync(path, 'utf8') : undefined
    if (fresh === undefined) {
      if (old !== undefined) differ = true
      lines.push(
        old === undefined ? `${file} skipped: what it is made from is not written yet` : `${file} exists, but nothing makes it any more`,
      )
    } else if (fresh === old) continue
    else if (write) {
      mkdirSync(join(root, folder), { recursive: true })
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
