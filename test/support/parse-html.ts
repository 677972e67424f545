/** HTML as an independent parser reads it (parse5, which follows the standard). For tests of rewritten HTML. */
import { type DefaultTreeAdapterTypes, parse } from 'parse5'

interface SeenLink {
  /** Decoded. */
  href: string
  untracked: boolean
  /** Position of the attribute, name and value. */
  start: number
  end: number
}

interface SeenHtml {
  /** The links of `a` and `area` elements as a reader without scripts sees them, in the order of the text, each once. */
  links: SeenLink[]
  /** The tree without the values of the hrefs. */
  skeleton: string
}

type Node = DefaultTreeAdapterTypes.Node

function hrefsOf(html: string): SeenHtml {
  const links = new Map<number, SeenLink>()
  const lines: string[] = []
  const stack: { node: Node; depth: number }[] = [
    { node: parse(html, { sourceCodeLocationInfo: true, scriptingEnabled: false }), depth: 0 },
  ]
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { node, depth } = next
    if ('attrs' in node) {
      const isLink = node.tagName === 'a' || node.tagName === 'area'
      const attributes = node.attrs.map(({ name, value }) => (isLink && name === 'href' ? name : `${name}=${JSON.stringify(value)}`))
      lines.push(`${depth} <${node.tagName} ${attributes.join(' ')}>`)
      const href = node.attrs.find((one) => one.name === 'href')
      const location = node.sourceCodeLocation?.attrs?.['href']
      if (isLink && href && location) {
        const untracked = node.attrs.some((one) => one.name === 'data-no-track')
        // A misnested link occurs once in the text and several times in the tree.
        links.set(location.startOffset, { href: href.value, untracked, start: location.startOffset, end: location.endOffset })
      }
    } else if ('value' in node) lines.push(`${depth} ${JSON.stringify(node.value)}`)
    else if ('data' in node) lines.push(`${depth} <!--${JSON.stringify(node.data)}-->`)
    else lines.push(`${depth} ${node.nodeName}`)
    if ('childNodes' in node) for (const child of [...node.childNodes].reverse()) stack.push({ node: child, depth: depth + 1 })
  }
  return { links: [...links.values()].sort((a, b) => a.start - b.start), skeleton: lines.join('\n') }
}

interface Rules {
  origin: string
  excluded: readonly string[]
  /** Returns the target of a link's token, or undefined for a foreign token. */
  read: (token: string) => string | undefined
}

/** Returns the faults of `after`, which should be `before` with its links rewritten to the track domain. */
export function faultsOf(before: string, after: string, { origin, excluded, read }: Rules): string[] {
  const was = hrefsOf(before)
  const is = hrefsOf(after)
  const faults: string[] = []
  if (was.skeleton !== is.skeleton) faults.push('another document')
  if (was.links.length !== is.links.length) return [...faults, `${is.links.length} links instead of ${was.links.length}`]
  let wasFrom = 0
  let isFrom = 0
  for (const [index, link] of was.links.entries()) {
    const now = is.links[index] as SeenLink
    if (before.slice(wasFrom, link.start) !== after.slice(isFrom, now.start)) faults.push(`the text before link ${index} differs`)
    wasFrom = link.end
    isFrom = now.end
    const given = taken(before.slice(link.start, link.end))
    const made = taken(after.slice(now.start, now.end))
    if (given.form !== made.form) faults.push(`link ${index} is written another way`)
    if (isCounted(link, origin, excluded)) {
      const url = now.href.startsWith(`${origin}/c/`) ? read(now.href.slice(origin.length + 3)) : undefined
      if (url !== asBrowser(link.href)) faults.push(`link ${index} leads to ${url} instead of ${link.href}`)
    } else if (given.value !== made.value) faults.push(`link ${index}, to ${link.href}, is not one to be counted`)
  }
  if (before.slice(wasFrom) !== after.slice(isFrom)) faults.push('the text behind the last link differs')
  return faults
}

/** Returns the form of an attribute, and its value as written. */
function taken(attribute: string): { form: string; value: string } {
  const [before = attribute, mark = ''] = /^[^=]*=[\t\n\f\r ]*(["']?)/.exec(attribute) ?? []
  return { form: before, value: attribute.slice(before.length, attribute.length - mark.length) }
}

const asBrowser = (href: string) => href.replace(/[\t\n\r]/g, '').replace(/^[\0- ]+|[\0- ]+$/g, '')

function isCounted({ href, untracked }: SeenLink, origin: string, excluded: readonly string[]): boolean {
  const url = asBrowser(href)
  if (untracked || !/^https?:\/\/[^/\\]/i.test(url) || /[\0-\x1f\x7f]/.test(url) || Buffer.byteLength(url) > 2000) return false
  const { hostname = '' } = URL.parse(url) ?? {}
  const names = hostname.replace(/\.$/, '').split('.')
  return hostname !== '' && !names.some((_, at) => [...excluded, new URL(origin).hostname].includes(names.slice(at).join('.')))
}
