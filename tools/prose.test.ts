/** The lint of prose on planted faults, and on text that only looks like one. */
import { describe, expect, test } from 'vitest'
import { commentsOf, judge, paragraphsOf, readPassages, stringsOf } from './prose.ts'

const rulesOf = (text: string, isHead = false) => judge({ at: 'x:1', text, isHead }).map(({ rule }) => rule)

describe('a passage', () => {
  test.each([
    ['Returns what was found.', 'what-clause'],
    ['The queue that nobody reads.', 'vague-actor'],
    ['The webhook is told of it.', 'tell'],
    ['Fails for good after a day.', 'idiom'],
    [`The worker ${'waits and '.repeat(20)}ends.`, 'long-sentence'],
  ])('"%s" breaks the rule %s', (text, rule) => {
    expect(rulesOf(text)).toEqual([rule])
  })

  test('breaks the rule of heads only where it opens a file', () => {
    expect(rulesOf('Where mail waits.', true)).toEqual(['head'])
    expect(rulesOf('Where mail waits.')).toEqual([])
  })

  test.each(['Reads `what` from the row.', 'The reply was "told you so".', 'Records each attempt. Then it waits.'])(
    '"%s" is in order',
    (text) => {
      expect(rulesOf(text, true)).toEqual([])
    },
  )
})

describe('the lint reads', () => {
  test('comments of code, with their lines, and no strings, templates, regular expressions or markup', () => {
    const code = [
      '/** The head. */',
      "const a = '/* no comment */' // first",
      '// second',
      'const b = /\\/\\/ no/',
      'const c = `// no ${1 /* inner */} // no`',
      'const d = <p>// no</p>',
    ].join('\n')
    expect(commentsOf('x.tsx', code)).toEqual([
      { at: 'x.tsx:1', text: 'The head.', isHead: true },
      { at: 'x.tsx:2', text: 'first\nsecond', isHead: false },
      { at: 'x.tsx:5', text: 'inner', isHead: false },
    ])
  })

  test('every string of a file of texts', () => {
    expect(
      stringsOf('t.ts', "export const t = { a: 'One',\n b: (n: number) => `two ${n} three` }").map(({ at, text }) => [at, text.trim()]),
    ).toEqual([
      ['t.ts:1', 'One'],
      ['t.ts:2', 'two'],
      ['t.ts:2', 'three'],
    ])
  })

  test('paragraphs, items and rows of a page, and no code', () => {
    const page = '# Title\n\nOne\ntwo [link](what.md).\n\n```sh\nwhat\n```\n\n- item\n- other\n\n    what\n'
    expect(paragraphsOf('p.md', page).map(({ at, text }) => [at, text])).toEqual([
      ['p.md:1', '# Title'],
      ['p.md:3', 'One\ntwo [link].'],
      ['p.md:10', '- item'],
      ['p.md:11', '- other'],
    ])
  })

  test('all of this repository', () => {
    const folders = new Set(readPassages('.').map(({ at }) => at.split('/')[0] ?? ''))
    expect([...folders].filter((one) => !one.includes('.md'))).toEqual(
      expect.arrayContaining(['bench', 'dashboard', 'docs', 'examples', 'packages', 'src', 'test', 'tools']),
    )
  })
})
