/** Checks every statement of every module against the migrated schema: a renamed column fails here, without running the feature. */
import { readdirSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { allStatements, sqlState } from '#db'
import { testDatabase } from './database.ts'

const source = new URL('../../src/', import.meta.url)
/** `main/` composes the modules and is none itself. */
const modules = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== 'main')
const publicInterfaces = modules.map(({ name }) => new URL(`${name}/${name}.ts`, source))

describe('every statement', () => {
  test('can be prepared against the schema', { timeout: 60_000 }, async () => {
    for (const publicInterface of publicInterfaces) await import(publicInterface.href)
    const statements = allStatements()
    expect(statements.length).toBeGreaterThan(40)
    const database = await testDatabase()
    onTestFinished(() => database.close())
    const faults: string[] = []
    for (const { name, text } of statements) {
      await database.db.script(`prepare ${name} as ${text}`).catch((error: Error) => {
        faults.push(`${sqlState(error)} ${error.message}\n${text}`)
      })
    }
    expect(faults).toEqual([])
  })

  test('that changes some of many rows chooses them once: in a subquery of its condition, they may be chosen again for each row', async () => {
    for (const publicInterface of publicInterfaces) await import(publicInterface.href)
    const choosesAgain = /\b(update|delete from)\b[^;]*(\bwhere\b[^;]*\bin|\busing|\bfrom) \(\s*select\b[^;]*\blimit\b/
    // The second is the guard of the spool (src/spool/row-guards.ts).
    const choosesOnce = /\bas materialized\b|\(spool\.tenant_id, spool\.email_id\) between \(/
    expect(allStatements().filter(({ text }) => choosesAgain.test(text) && !choosesOnce.test(text))).toEqual([])
  })

  test('has a name of its own', () => {
    const names = allStatements().map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })
})
