/** The browser program is separate: it may import npm packages and its own files only. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow } from '../../tools/source-files.ts'

test('the dashboard imports nothing of the service', () => {
  const files = filesBelow(process.cwd(), 'dashboard/src', '').filter((path) => /\.tsx?$/.test(path))
  expect(files.length).toBeGreaterThan(15)
  const imported = files.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/(?:from|import) ?\(?'([^']+)'/g)].map(([, name = '']) =>
      name.startsWith('.') ? relative('dashboard/src', join(dirname(path), name)) : name,
    ),
  )
  expect(imported.filter((name) => name.startsWith('..') || name.startsWith('#') || name.startsWith('node:'))).toEqual([])
})
