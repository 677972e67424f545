/** The browser program is separate: it may run npm packages and its own files only, and share types with the service. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { filesBelow } from '../../tools/source-files.ts'

const typeImport = /^(?:import|export) type [^']*'[^']+'$/gm

test('the dashboard imports only types of the service', () => {
  const files = filesBelow(process.cwd(), 'dashboard/src', '').filter((path) => /\.tsx?$/.test(path))
  expect(files.length).toBeGreaterThan(15)
  const imported = files.flatMap((path) =>
    [
      ...readFileSync(path, 'utf8')
        .replace(typeImport, '')
        .matchAll(/(?:from|import) ?\(?'([^']+)'/g),
    ].map(([, name = '']) => (name.startsWith('.') ? relative('dashboard/src', join(dirname(path), name)) : name)),
  )
  expect(imported.filter((name) => name.startsWith('..') || name.startsWith('#') || name.startsWith('node:'))).toEqual([])
})
