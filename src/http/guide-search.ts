/** Search in the guide. The pages are indexed once; a query has few words, so that a request reads the index in some milliseconds. */

/** A page with all words of a query. */
export interface FoundPage {
  file: string
  title: string
  /** The first line of text that has one of the words, without its marks. */
  line: string
}

export interface GuideSearch {
  /** `count`: of all pages found; `pages`: the first of them. */
  find(query: string): { count: number; pages: FoundPage[] }
}

const maxWords = 6
const maxPages = 20
/** More occurrences do not raise a page. */
const maxOccurrences = 50

/** `pages`: Markdown by path below docs/. `titleOf`: the title of a page's Markdown. */
export function openGuideSearch(pages: ReadonlyMap<string, string>, titleOf: (text: string) => string): GuideSearch {
  const indexed = [...pages]
    .filter(([file]) => file !== 'index.md' && !file.endsWith('/'))
    .map(([file, text]) => ({ file, text, title: titleOf(text), lower: text.toLowerCase(), lowerTitle: titleOf(text).toLowerCase() }))
  return {
    find(query) {
      const words = [...new Set(query.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, maxWords)
      if (words.length === 0) return { count: 0, pages: [] }
      const found = indexed
        .filter(({ lower }) => words.every((word) => lower.includes(word)))
        .map(({ file, text, title, lower, lowerTitle }) => {
          const inTitle = words.filter((word) => lowerTitle.includes(word)).length
          const times = words.reduce((sum, word) => sum + occurrences(lower, word), 0)
          return { file, text, title, rank: inTitle * 100 + Math.min(times, maxOccurrences) - (file.includes('/') ? 50 : 0) }
        })
        .sort((one, other) => other.rank - one.rank)
      const shown = found.slice(0, maxPages).map(({ file, text, title }) => ({ file, title, line: lineWith(words, text) }))
      return { count: found.length, pages: shown }
    },
  }
}

function occurrences(text: string, word: string): number {
  let count = 0
  for (let at = text.indexOf(word); at >= 0 && count < maxOccurrences; at = text.indexOf(word, at + word.length)) count++
  return count
}

function lineWith(words: readonly string[], text: string): string {
  const line = text.split('\n').find((one) => !one.startsWith('#') && words.some((word) => one.toLowerCase().includes(word))) ?? ''
  return line
    .slice(0, 1000)
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*|]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 160)
}
