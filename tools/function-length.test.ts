/** The check of function lengths: every form of function is counted, and a reason permits up to 100 lines. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { checkFunctionLength } from './function-length.ts'
import { readSource } from './source-files.ts'

const roots: string[] = []
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true })
})

function problemsOf(text: string, path = 'src/a/a.ts'): string[] {
  const root = mkdtempSync(join(tmpdir(), 'functions-'))
  roots.push(root)
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
  return checkFunctionLength(readSource(root, path.split('/')[0])).map(({ rule, at, says }) => `${rule}: ${at} ${says}`)
}

/** A body that makes a function, with its first and last line, `lines` long. */
const body = (lines: number) => `{\n${'  f()\n'.repeat(lines - 2)}}`
const tooLong = /^function-length: src\/a\/a\.ts:2 a function of 61 lines: split it, or give the reason/

test.each([
  ['function', (text: string) => `export async function open() ${text}\n`],
  ['function expression', (text: string) => `export const open = function () ${text}\n`],
  ['arrow function', (text: string) => `export const open = () => ${text}\n`],
  ['callback', (text: string) => `register('ä', async () => ${text})\n`],
  ['method of an object', (text: string) => `export const a = { open() ${text} }\n`],
  ['method of a class', (text: string) => `export class A { open() ${text} }\n`],
  ['private method', (text: string) => `export class A { #open() ${text} }\n`],
  ['constructor', (text: string) => `export class A { constructor() ${text} }\n`],
])('a function over 60 lines is refused without a reason: %s', (_, write) => {
  expect(problemsOf(`// ä\n${write(body(60))}`)).toEqual([])
  expect(problemsOf(`// ä\n${write(body(61))}`)).toEqual([expect.stringMatching(tooLong)])
})

test('the page of a component is counted too', () => {
  const page = `export const Page = () => (\n  <ul>\n${'    <li />\n'.repeat(70)}  </ul>\n)\n`
  expect(problemsOf(page, 'dashboard/page.tsx')).toEqual([
    expect.stringMatching(/^function-length: dashboard\/page\.tsx:1 a function of 74/),
  ])
})

test('a reason directly above the function permits up to 100 lines', () => {
  const comments = [
    '/** Opens. Long because it is one table. */\n',
    '/**\n * Opens.\n *\n * Long because it is one table.\n */\n',
    '// Long because it is one table.\n// It has rows.\n',
  ]
  for (const comment of comments) {
    expect(problemsOf(`${comment}export function open() ${body(100)}\n`)).toEqual([])
    expect(problemsOf(`${comment}export function open() ${body(101)}\n`)).toEqual([expect.stringMatching(/101 lines: split it, for 100/)])
  }
  expect(problemsOf(`${comments[0]}\nconst x = 1\nexport function open() ${body(61)}\n`)).toHaveLength(1)
})

test('the callbacks of a test are not limited, but its helpers are', () => {
  const text = `describe('a', () => ${body(70)})\ntest.each([1])('b', async () => ${body(120)})\nafterAll(() => ${body(70)})\n`
  expect(problemsOf(text, 'src/a/a.test.ts')).toEqual([])
  expect(problemsOf(text)).toHaveLength(3)
  expect(problemsOf(`function help() ${body(70)}\n`, 'src/a/a.test.ts')).toHaveLength(1)
})

test('a generated file is not judged', () => {
  expect(problemsOf(`export function open() ${body(120)}\n`, 'packages/client/generated.ts')).toEqual([])
})
