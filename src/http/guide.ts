/**
 * The guide at /docs/guide, from the Markdown pages of docs/. Only files found at the start are served. They are read at the first request;
 * each page is rendered at its own first request and cached. HTML in Markdown is escaped, and the only script is docs/guide.js. The
 * sections of index.md are the cards of the home page and the groups of the navigation: a sentence, then a table with the contents and a
 * page in each row.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Token, Tokens } from 'marked'
import { type StaticFile, sendStaticFile, staticFileOf } from './dashboard-files.ts'
import { type GuideSearch, openGuideSearch } from './guide-search.ts'

const home = '/docs/guide'
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** Files served under another path, or shown as code. */
const elsewhere: Readonly<Record<string, string>> = { 'generated/openapi.json': '/v1/openapi.json' }

/** A folder that has no page of its own; its page lists the files. */
const decisions = 'decisions/'

/** Entries of a card that are in sight; the others are folded. */
const inSight = 5

const mostLetters = 100

/** The dashboard's mark (dashboard/public/icon.svg), inline because the dashboard may not be built. */
const mark =
  '<svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true"><rect width="24" height="24" rx="6" fill="#f2b705"/><path d="M5.5 7.5h13v9.5h-13zM5.5 8l6.5 5 6.5-5" fill="none" stroke="#1c1b18" stroke-width="1.7" stroke-linejoin="round"/></svg>'

interface Entry {
  address: string
  title: string
  task: string
}

interface Group {
  heading: string
  about: string
  entries: Entry[]
}

interface Guide {
  /** Contents by path below docs/, such as `sending.md`. */
  files: ReadonlyMap<string, string>
  groups: readonly Group[]
  search: GuideSearch
}

/** Serves no pages if the folder does not exist. The font is one of the dashboard's files; without it the pages use the system's. */
export function serveGuide(app: FastifyInstance, folder: string, dashboard: ReadonlyMap<string, StaticFile> = new Map()): void {
  if (!existsSync(join(folder, 'index.md'))) return
  const names = fileNames(folder)
  let read: Guide | undefined
  const guide = () => (read ??= readGuide(folder, names))
  const font = [...dashboard].find(([path]) => /^\/assets\/geist-latin-wght-normal\b.*\.woff2$/.test(path))?.[0]
  const css = readFileSync(join(folder, 'guide.css'), 'utf8')
  const style = staticFileOf(Buffer.from(font === undefined ? css : `${fontFace(font)}${css}`), 'text/css; charset=utf-8')
  app.get(`${home}/guide.css`, async (request, reply) => sendStaticFile(style, request, reply, 'no-cache'))
  const script = staticFileOf(readFileSync(join(folder, 'guide.js')), 'text/javascript; charset=utf-8')
  app.get(`${home}/guide.js`, async (request, reply) => sendStaticFile(script, request, reply, 'no-cache'))
  app.get(`${home}/search`, async (request, reply) => {
    const { q } = request.query as { q?: unknown }
    const query = typeof q === 'string' ? q.slice(0, mostLetters).trim() : ''
    const page = staticFileOf(Buffer.from(searchDocument(query, guide())), 'text/html; charset=utf-8')
    return sendStaticFile(page, request, reply, 'no-cache', policy)
  })
  for (const file of names.some(isDecision) ? [...names, decisions] : names) {
    let page: StaticFile | undefined
    app.get(addressOf(file), async (request, reply) => {
      page ??= staticFileOf(Buffer.from(await documentOf(file, guide())), 'text/html; charset=utf-8')
      return sendStaticFile(page, request, reply, 'no-cache', policy)
    })
  }
}

/** As in dashboard/src/style.css. */
const fontFace = (path: string) => `@font-face {
  font-family: "Geist Variable";
  font-display: swap;
  font-weight: 100 900;
  src: url("${path}") format("woff2-variations");
  unicode-range: U+0000-00FF, U+0131, U+0152-0153, U+02BB-02BC, U+02C6, U+02DA, U+02DC, U+2000-206F, U+20AC, U+2122, U+2191, U+2193, U+2212;
}
`

const fileNames = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.(md|sql)$/.test(name))
    .sort()

const isDecision = (name: string): boolean => name.startsWith(decisions)

function readGuide(folder: string, names: readonly string[]): Guide {
  const files = new Map(
    names.map((name) => {
      const text = readFileSync(join(folder, name), 'utf8')
      return [name, name.endsWith('.sql') ? `# ${posix.basename(name)}\n\n\`\`\`sql\n${text}\n\`\`\`\n` : text]
    }),
  )
  const decided = names.filter(isDecision).map((name) => `- [${posix.basename(name)}](${name})\n`)
  if (decided.length > 0) files.set(decisions, `# Decisions\n\nThe reasons for the design of Postrider.\n\n${decided.join('')}`)
  return { files, groups: groupsOf(files), search: openGuideSearch(files, titleOf) }
}

/** `index.md` is the home page, `generated/config.md` is at `/docs/guide/generated/config`. */
const addressOf = (file: string): string => (file === 'index.md' ? home : `${home}/${file.replace(/\/$|\.(md|sql)$/, '')}`)

/** The address of a link in a page; undefined if the target is not served. */
function targetOf(href: string, file: string, files: ReadonlyMap<string, string>): string | undefined {
  if (/^https?:\/\//.test(href) || href.startsWith('#')) return href
  const [path = '', anchor] = href.split('#', 2)
  const named = posix.join(posix.dirname(file), path)
  if (elsewhere[named]) return elsewhere[named]
  return files.has(named) ? `${addressOf(named)}${anchor === undefined ? '' : `#${anchor}`}` : undefined
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escaped = (text: string) => text.replace(/[&<>"']/g, (letter) => escapes[letter] ?? letter)

/** GitHub's anchors, so that links work in both places. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

async function render(markdown: string, file: string, files: ReadonlyMap<string, string>): Promise<string> {
  const { Marked } = await import('marked')
  const marked = new Marked({
    renderer: {
      html: ({ text }: Tokens.HTML | Tokens.Tag) => escaped(text),
      image: ({ text }) => escaped(text),
      heading({ depth, tokens, text }) {
        return `<h${depth} id="${escaped(anchorOf(plain(tokens, text)))}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens, text: words }) {
        const target = targetOf(href, file, files)
        const text = /^[\w-]+(\.md|\/)$/.test(words) ? escaped(titleAt(href, file, files)) : this.parser.parseInline(tokens)
        return target === undefined ? text : `<a href="${escaped(target)}">${text}</a>`
      },
    },
  })
  const html = marked.parse(markdown, { async: false })
  // Pages cannot contain these tags themselves, because their HTML is escaped. A scrolling part can be focused, so that keys scroll it.
  return html
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<table>', '<div class="wide" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
}

/** A link whose text is the file's name gets the page's title instead. */
const titleAt = (href: string, file: string, files: ReadonlyMap<string, string>): string => {
  const [path = ''] = href.split('#', 1)
  return titleOf(files.get(posix.join(posix.dirname(file), path)) ?? '') || path
}

const plain = (tokens: readonly Token[], text: string): string =>
  tokens
    .map((token) => ('tokens' in token && token.tokens ? plain(token.tokens, token.raw) : 'text' in token ? String(token.text) : ''))
    .join('') || text

const titleOf = (text: string): string => (/^# (.+)$/m.exec(text)?.[1] ?? '').replaceAll('`', '')

/** The sections of index.md with their links, each page once, with the titles of the linked pages. */
function groupsOf(files: ReadonlyMap<string, string>): Group[] {
  const groups: Group[] = []
  const seen = new Set<string>()
  for (const line of (files.get('index.md') ?? '').split('\n')) {
    const heading = /^## (.+)$/.exec(line)?.[1]
    if (heading) groups.push({ heading, about: '', entries: [] })
    const group = groups.at(-1)
    if (heading || !group) continue
    if (!line.startsWith('|')) {
      group.about = `${group.about} ${line}`.trim()
      continue
    }
    const task = /^\| ([^|]+) \|/.exec(line)?.[1] ?? ''
    for (const [, name = '', href = ''] of line.matchAll(/\[([^\]]+)\]\(([^)#\s]+)\)/g)) {
      const address = targetOf(href, 'index.md', files)
      if (address === undefined || seen.has(address)) continue
      seen.add(address)
      group.entries.push({ address, title: (href.endsWith('.sql') ? '' : titleOf(files.get(href) ?? '')) || name, task })
    }
  }
  return groups
}

const itemOf = ({ address, title, task }: Entry): string =>
  `<li><a href="${escaped(address)}">${escaped(title)}</a><span>${escaped(task)}</span></li>`
const listOf = (entries: readonly Entry[]): string => `<ul>${entries.map(itemOf).join('')}</ul>`

/** Beside the introduction. */
const startOf = (first: Entry): string => `<div class="start"><ul>${itemOf(first)}
<li><a href="/docs">API reference</a><span>each endpoint, to try in the browser</span></li></ul></div>
`

function cardOf({ heading, about, entries }: Group): string {
  const folded = entries.slice(inSight)
  const more = `<details><summary>${folded.length} more</summary>${listOf(folded)}</details>`
  return `<section class="card"><h2 id="${escaped(anchorOf(heading))}">${escaped(heading)}</h2><p>${escaped(about)}</p>
${listOf(entries.slice(0, inSight))}${folded.length > 0 ? more : ''}</section>
`
}

/** The group of the page is open. */
function navigationOf(groups: readonly Group[], here: string): string {
  const parts = groups.map(({ heading, entries }) => {
    const items = entries.map(
      ({ address, title }) =>
        `<li><a href="${escaped(address)}"${address === here ? ' aria-current="page"' : ''}>${escaped(title)}</a></li>`,
    )
    const open = entries.some(({ address }) => address === here) ? ' open' : ''
    return `<details${open}><summary>${escaped(heading)}</summary><ul>${items.join('')}</ul></details>`
  })
  return `<nav id="pages" aria-label="Pages">${parts.join('\n')}</nav>`
}

/** The home page needs no navigation, because its cards list all pages. */
async function columnsOf(file: string, { files, groups }: Guide): Promise<string> {
  const text = files.get(file) ?? ''
  if (file !== 'index.md')
    return `<div class="columns">
<main>
${await render(text, file, files)}</main>
${navigationOf(groups, addressOf(file))}
</div>`
  const [intro = ''] = text.split(/^## /m, 1)
  const first = groups[0]?.entries[0]
  const cards = groups.map((group) => ({ ...group, entries: group.entries.filter((entry) => entry !== first) }))
  return `<div class="home">
<main>
<div class="first">
<div class="intro">
${await render(intro, file, files)}</div>
${first ? startOf(first) : ''}</div>
<div class="cards">
${cards.map(cardOf).join('')}</div>
</main>
</div>`
}

function searchDocument(query: string, { search, groups }: Guide): string {
  const { count, pages } = search.find(query)
  const sentence =
    query === ''
      ? 'Type one or more words above.'
      : count === 0
        ? `No page has “${query}”. Use fewer words.`
        : `${count > pages.length ? `The first ${pages.length} of ${count} pages` : count === 1 ? '1 page' : `${count} pages`} with “${query}”.`
  const items = pages.map(
    ({ file, title, line }) => `<li><a href="${escaped(addressOf(file))}">${escaped(title)}</a><span>${escaped(line)}</span></li>\n`,
  )
  const list = items.length > 0 ? `<ul class="found">\n${items.join('')}</ul>\n` : ''
  return shell(
    'Search',
    `<div class="columns">
<main>
<h1>Search</h1>
<p>${escaped(sentence)}</p>
${list}</main>
${navigationOf(groups, '')}
</div>`,
    query,
  )
}

const documentOf = async (file: string, guide: Guide): Promise<string> =>
  shell(titleOf(guide.files.get(file) ?? ''), await columnsOf(file, guide))

const shell = (title: string, columns: string, query = ''): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="stylesheet" href="${home}/guide.css">
<script src="${home}/guide.js"></script>
</head>
<body>
<header><a class="brand" href="${home}">${mark}Postrider <span>Guide</span></a>
<form action="${home}/search" role="search"><input type="search" name="q" value="${escaped(query)}" maxlength="${mostLetters}" placeholder="Search the guide" aria-label="Search the guide"><button>Search</button></form>
${columns.includes('<nav id="pages"') ? '<a class="pages" href="#pages">All pages</a>' : ''}<a href="/docs">API reference</a><a href="/">Dashboard</a></header>
${columns}
</body>
</html>
`
