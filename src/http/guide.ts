/**
 * The guide at /docs/guide, from the Markdown pages of docs/. Only files found at the start are served; each page is rendered at its first
 * request and cached. HTML in Markdown is escaped, and no page runs a script.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Token, Tokens } from 'marked'
import { type StaticFile, sendStaticFile, staticFileOf } from './dashboard-files.ts'

const home = '/docs/guide'
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Files served under another path, or shown as code. */
const elsewhere: Readonly<Record<string, string>> = { 'generated/openapi.json': '/v1/openapi.json' }

interface Guide {
  /** Contents by path below docs/, such as `sending.md`. */
  files: ReadonlyMap<string, string>
  navigation: string
}

/** Serves no pages if the folder does not exist. */
export function serveGuide(app: FastifyInstance, folder: string): void {
  if (!existsSync(join(folder, 'index.md'))) return
  const guide = readGuide(folder)
  const style = staticFileOf(readFileSync(join(folder, 'guide.css')), 'text/css; charset=utf-8')
  app.get(`${home}/guide.css`, async (request, reply) => sendStaticFile(style, request, reply, 'no-cache'))
  for (const file of guide.files.keys()) {
    let page: StaticFile | undefined
    app.get(addressOf(file), async (request, reply) => {
      page ??= staticFileOf(Buffer.from(await documentOf(file, guide)), 'text/html; charset=utf-8')
      return sendStaticFile(page, request, reply, 'no-cache', policy)
    })
  }
}

function readGuide(folder: string): Guide {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.(md|sql)$/.test(name))
    .sort()
  const files = new Map(
    names.map((name) => {
      const text = readFileSync(join(folder, name), 'utf8')
      return [name, name.endsWith('.sql') ? `# ${posix.basename(name)}\n\n\`\`\`sql\n${text}\n\`\`\`\n` : text]
    }),
  )
  return { files, navigation: navigationOf(files) }
}

/** `index.md` is the home page, `generated/config.md` is at `/docs/guide/generated/config`. */
const addressOf = (file: string): string => (file === 'index.md' ? home : `${home}/${file.replace(/\.(md|sql)$/, '')}`)

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

async function render(file: string, files: ReadonlyMap<string, string>): Promise<string> {
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
        const text = /^[\w-]+\.md$/.test(words) ? escaped(titleAt(href, file, files)) : this.parser.parseInline(tokens)
        return target === undefined ? text : `<a href="${escaped(target)}">${text}</a>`
      },
    },
  })
  const html = marked.parse(files.get(file) ?? '', { async: false })
  // Pages cannot contain these tags themselves, because their HTML is escaped.
  return html.replaceAll('<table>', '<div class="wide"><table>').replaceAll('</table>', '</table></div>')
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

/** The links of index.md in its order and under its headings, with the titles of the linked pages. */
function navigationOf(files: ReadonlyMap<string, string>): string {
  const parts: string[] = []
  const seen = new Set<string>()
  for (const line of (files.get('index.md') ?? '').split('\n')) {
    const heading = /^## (.+)$/.exec(line)?.[1]
    if (heading) parts.push(`</ul><h2>${escaped(heading)}</h2><ul>`)
    for (const [, href = ''] of line.matchAll(/\]\(([^)#\s]+)\)/g)) {
      const title = titleOf(files.get(href) ?? '')
      if (!title || seen.has(href)) continue
      seen.add(href)
      parts.push(`<li><a href="${escaped(addressOf(href))}">${escaped(title)}</a></li>`)
    }
  }
  return `<ul>${parts.join('')}</ul>`
}

async function documentOf(file: string, { files, navigation }: Guide): Promise<string> {
  const title = titleOf(files.get(file) ?? '')
  const here = `<a href="${escaped(addressOf(file))}"`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="stylesheet" href="${home}/guide.css">
</head>
<body>
<header><a href="${home}">Postrider</a><a href="/docs">API reference</a><a class="pages" href="#pages">All pages</a></header>
<div class="columns">
<main>
${await render(file, files)}</main>
<nav id="pages" aria-label="Pages">${navigation.replace(here, `${here} aria-current="page"`)}</nav>
</div>
</body>
</html>
`
}
