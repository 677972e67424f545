/** Refuses names of verbs for people where a name of the value is meant (CONTRIBUTING.md, "Names"). Uses the syntax tree; tests may use them. */
import { nameOf, nodesOf, type Problem, placeOf, type SourceFile } from './source-files.ts'

const refused = new Map([
  ['said', 'name the value: reply, text, output, reason'],
  ['told', 'name the value: reported, recorded, deliveries'],
  ['tell', 'name the action: report, record, append, notify'],
  ['heard', 'name the value: greeting, payload, received'],
  ['asked', 'name the value: request, query, parameters, wanted'],
])

export function checkIdentifiers(files: readonly SourceFile[]): Problem[] {
  return files
    .filter((file) => !file.isTest)
    .flatMap((file) =>
      [...nodesOf(file.tree)].flatMap((node) => {
        const name = nameOf(node)
        const says = refused.get(name ?? '')
        return says === undefined ? [] : [{ rule: 'identifier', at: placeOf(file, node), says: `${name}: ${says}` }]
      }),
    )
}
