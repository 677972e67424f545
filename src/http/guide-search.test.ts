import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openGuideSearch } from './guide-search.ts'

const pages = new Map([
  ['index.md', '# Home\n\nwebhooks and DKIM\n'],
  ['webhooks.md', '# Webhooks\n\nA webhook is a URL.\n\nIt is [signed](signing.md) with `HMAC`.\n'],
  ['decisions/010-log.md', '# Webhooks follow the log\n\nThe log has webhooks.\n'],
  ['dkim.md', '# DKIM\n\nA signature, not a webhook.\n'],
])
const search = openGuideSearch(pages, (text) => text.slice(2, text.indexOf('\n')))
const found = (query: string) => search.find(query).pages.map(({ file }) => file)

test('pages with the word in their title come first, decisions later, and the home page never', () => {
  expect(found('Webhook')).toEqual(['webhooks.md', 'decisions/010-log.md', 'dkim.md'])
})

test('a page has all words of the query', () => {
  expect(found('webhook signature')).toEqual(['dkim.md'])
  expect(found('webhook elephant')).toEqual([])
  expect(found('  ')).toEqual([])
})

test('a page is shown with its first line that has a word, without marks', () => {
  expect(search.find('hmac').pages[0]?.line).toBe('It is signed with HMAC .')
})

test('a query of many words costs no more than one of six', () => {
  const text = `# Page\n\n${'a b c d e f g '.repeat(100_000)}\n`
  const large = openGuideSearch(new Map([['large.md', text]]), () => 'Page')
  const cpuMs = () => {
    const before = process.cpuUsage()
    for (let round = 0; round < 10; round++) large.find('a b c d e f g '.repeat(100))
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 10_000
  }
  // The least of three, because other tests use the processor too.
  expect(Math.min(cpuMs(), cpuMs(), cpuMs())).toBeLessThan(50)
})

test('any query has an answer', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (query) => {
      const { count, pages: shown } = search.find(query)
      expect(shown.length).toBeLessThanOrEqual(count)
    }),
  )
})
