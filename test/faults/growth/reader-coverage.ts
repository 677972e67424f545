/** Lists the exported functions that look like readers of external octets: by their name, unless they read the database. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { filesBelow } from '../../../tools/source-files.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

const exported = /^export (?:async )?(?:function\*?|const) (\w+)(?:<[^>]*>)?(?: = (?:async )?)?\(?\s*(\w*)/gm
const looksLikeReader =
  /^(?:read|parse|decode|scan|split|classify|judge|unescape)(?![a-z])|^(?:findSts|findRoute|textFrom|linksOf|addressesIn|typedAddress|unescaped)/
/** Names of the first parameter of a function that reads rows. */
const readsDatabase = /^(?:on|tx|db|session)$/

const functionsIn = (file: string) => [...readFileSync(`${root}/${file}`, 'utf8').matchAll(exported)]

/** `src/mail/read-message.ts readMessage`, every exported function and constant. */
export const everyExport = (): Set<string> => {
  const files = filesBelow(root, 'src', '.ts').filter((file) => !file.endsWith('.test.ts'))
  return new Set(files.flatMap((file) => functionsIn(file).map(([, name]) => `${file} ${name}`)).concat(classesIn(files)))
}

const classesIn = (files: readonly string[]) =>
  files.flatMap((file) =>
    [...readFileSync(`${root}/${file}`, 'utf8').matchAll(/^export class (\w+)/gm)].map(([, name]) => `${file} ${name}`),
  )

export const readersBySource = (): string[] =>
  filesBelow(root, 'src', '.ts')
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) =>
      functionsIn(file)
        .filter(([, name = '', first = '']) => looksLikeReader.test(name) && !readsDatabase.test(first))
        .map(([, name]) => `${file} ${name}`),
    )
