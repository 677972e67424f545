/** docs/generated/llms.txt: the pages of docs/index.md by task, with their addresses at a service. Pure: text in, text out. */

const link = /\[([^\]]+)\]\(([^)#\s]+)[^)]*\)/g

/** The address at which the service serves a file of docs/. */
const addressOf = (file: string): string =>
  file === 'generated/openapi.json' ? '/v1/openapi.json' : `/docs/guide/${file.replace(/\.(?:md|sql)$/, '').replace(/\/$/, '')}`

/** The list of a folder is for people. */
const isListed = (file: string) => /\.(?:md|sql|json)$/.test(file)

/** In the form of llmstxt.org: a title, a summary, and sections with links. */
export function llmsDocument(index: string): string {
  const [, title = ''] = /^# (.+)$/m.exec(index) ?? []
  const lines = index.split('\n')
  const firstLine = lines.findIndex((line, at) => at > 0 && line !== '' && !line.startsWith('#'))
  const [summary = ''] = lines
    .slice(firstLine, lines.indexOf('', firstLine))
    .join(' ')
    .split(/(?<=\.) /)
  const sections = lines.flatMap((line) => {
    const heading = /^## (.+)$/.exec(line)?.[1]
    if (heading !== undefined) return ['', `## ${heading}`, '']
    const links = [...line.matchAll(link)].flatMap(([, name = '', file = '']) => (isListed(file) ? [{ name, file }] : []))
    const task = /^\| ([^|]+) \|/.exec(line)?.[1]
    return links.map(({ name, file }) => `- [${name.replace(/\.md$/, '')}](${addressOf(file)})${task === undefined ? '' : `: ${task}`}`)
  })
  const tools =
    'Agents get tools for this installation at `/mcp` (Model Context Protocol, with an API key): see [agents](/docs/guide/agents).'
  return [`# ${title.replace(/(?:: documentation| guide)$/, '')}`, '', `> ${summary}`, '', tools, ...sections, ''].join('\n')
}
