/** Tests the generated documents and the CI sum on small inputs, and that no page of the repository has a broken link. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { compareGoldens, firstDifference } from './golden.ts'
import { llmsDocument } from './llms.ts'
import { commandsDocument, configDocument, errorsDocument } from './reference-pages.ts'
import { schemaDocument } from './schema-document.ts'
import { failuresOf, sumReports } from './sum-tests.ts'

describe('documents', () => {
  test('the error table has a row for each refusal, with bars escaped', () => {
    const text = errorsDocument({ not_found: { status: 404, means: 'no | such thing', suggestion: 'look' } })
    expect(text).toContain('| `not_found` | 404 | no \\| such thing | look |')
  })

  test('the settings table shows values as code and words as words', () => {
    const text = configDocument({
      port: { env: 'PORT', default: '3025', means: 'port' },
      relay: { env: 'RELAY', default: 'none', means: 'relay' },
    })
    expect(text).toContain('| `PORT` | `3025` | port |\n| `RELAY` | none | relay |\n')
  })

  test("each command's help stands under its name", () => {
    expect(commandsDocument([{ name: 'serve', help: 'starts\n' }])).toContain('## serve\n\n```\nstarts\n```\n')
  })

  test('the list of pages for programs has the summary, and the links of the index with their tasks', () => {
    const index =
      '# Guide: documentation\n\nAn example. More.\n\n## Begin\n\n| Task | Read |\n|---|---|\n| send | [a.md](a.md), [b](b/) |\n\n[schema](generated/x.sql)\n'
    const text = llmsDocument(index)
    expect(text).toMatch(/^# Guide\n\n> An example\.\n/)
    expect(text).toContain('## Begin\n\n- [a](/docs/guide/a): send\n- [schema](/docs/guide/generated/x)\n')
  })

  test('a database without tables is refused', async () => {
    await expect(schemaDocument(async () => [])).rejects.toThrow('was it migrated')
  })

  test('the first line that differs is named, also when one text ends before the other', () => {
    expect(firstDifference('a\nb', 'a\nc')).toBe('line 2\n  - b\n  + c')
    expect(firstDifference('a\nb', 'a')).toBe('line 2\n  - b\n  + (end)')
  })
})

describe('the sum of a CI run', () => {
  const report = { success: true, numPassedTests: 3, numFailedTests: 0, testResults: [] }

  test('adds up all reports and failed steps', () => {
    expect(sumReports([report, { ...report, success: false, numPassedTests: 1, numFailedTests: 2 }], 1)).toEqual({ passed: 4, failed: 3 })
  })

  test('counts a run that failed without a failed test', () => {
    expect(sumReports([{ ...report, success: false }], 0)).toEqual({ passed: 3, failed: 1 })
  })

  test('names each failed test, and each file that did not load', () => {
    const passed = { fullName: 'adds', status: 'passed', failureMessages: [] }
    const failed = { fullName: 'divides', status: 'failed', failureMessages: ['Error: 1 is not 2\n    at sum.ts:1'] }
    const testResults = [
      { name: 'sum.test.ts', status: 'failed', message: '', assertionResults: [passed, failed] },
      { name: 'gone.test.ts', status: 'failed', message: 'Error: no file\n', assertionResults: [] },
      { name: 'good.test.ts', status: 'passed', message: '', assertionResults: [passed] },
    ]
    expect(failuresOf({ ...report, testResults })).toEqual(['sum.test.ts: divides: Error: 1 is not 2', 'gone.test.ts: Error: no file'])
  })
})

describe('goldens', () => {
  const modules: Record<string, string> = {
    db: `const row = { oid: 1, name: 'emails', partition_key: 'RANGE (id)', options: null, type: 'timestamp with time zone', required: true,
        identity: '', default_value: null, collation: null, storage: null, definition: 'CREATE INDEX x ON ONLY public.emails USING btree (id)' }
      export const openScratchDatabase = async () => ({ query: async () => [row], close: async () => {} })`,

    cli: 'export const commandsHelp = () => [{ name: "serve", help: "usage" }]',
  }

  test('are written once, are the same the next time, and a change or a lost one is named', async () => {
    const root = mkdtempSync(join(tmpdir(), 'golden-'))
    for (const [module, text] of Object.entries(modules)) {
      mkdirSync(join(root, 'src', module), { recursive: true })
      writeFileSync(join(root, 'src', module, `${module}.ts`), text)
    }
    mkdirSync(join(root, 'docs'))
    writeFileSync(join(root, 'docs/index.md'), '# Pages\n')
    const generated = (file: string) => join(root, 'docs/generated', file)
    expect((await compareGoldens(root, false)).differ).toBe(true)
    expect((await compareGoldens(root, true)).lines).toHaveLength(11)
    expect(readFileSync(generated('schema.sql'), 'utf8')).toContain('emails timestamptz not null')
    expect(await compareGoldens(root, false)).toEqual({ lines: [], differ: false })
    rmSync(generated('schema.sql'))
    rmSync(join(root, 'src/db'), { recursive: true })
    expect(await compareGoldens(root, false)).toEqual({ lines: ['schema.sql skipped: there is no module db yet'], differ: false })

    writeFileSync(generated('errors.md'), '# Other\n')
    rmSync(generated('openapi.json'))
    rmSync(join(root, 'src/cli'), { recursive: true })
    const { lines, differ } = await compareGoldens(root, false)
    expect(differ).toBe(true)
    expect(lines.join('\n')).toMatch(
      /errors\.md differs at line 1\n {2}- # Other\n {2}\+ # Error codes[^]*openapi\.json is missing[^]*cli\.md exists, but cannot be made/,
    )
    rmSync(root, { recursive: true })
  })
})

describe('pages', () => {
  const pages = [...readdirSync('.'), ...readdirSync('docs', { recursive: true }).map((path) => join('docs', String(path)))].filter(
    (path) => path.endsWith('.md'),
  )

  test.each(pages)('every link of %s leads somewhere', (page) => {
    const links = [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((link) => join(dirname(page), link[1] ?? ''))
    // docs/generated/ is covered by the golden files.
    expect(links.filter((path) => !path.startsWith('docs/generated/') && !existsSync(path))).toEqual([])
  })
})
