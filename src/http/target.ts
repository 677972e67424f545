/** Where a request is meant to go: the Host it names, and the path in the form the router takes. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Refusal } from '#base'

/** RFC 9112 section 3.2: a host name or address, with a port or not; a request of HTTP/1.1 without one, or with several, is answered 400. */
const hostForm = /^(\[[0-9a-f:.]+\]|[\w.-]*)(:\d{1,5})?$/i

export function refuseBadHost({
  raw,
  headers,
}: {
  raw: Pick<IncomingMessage, 'httpVersionMajor' | 'httpVersionMinor' | 'rawHeaders'>
  headers: IncomingHttpHeaders
}): void {
  const isOld = raw.httpVersionMajor === 1 && raw.httpVersionMinor === 0
  // Of several, a proxy before us may have gone by another than the first, which is the one that Node tells.
  const hosts = raw.rawHeaders.filter((name, at) => at % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host').length
  if (headers.host === undefined ? !isOld : hosts > 1 || !hostForm.test(headers.host)) {
    throw new Refusal('validation_error', { message: 'the Host header is missing, is there twice, or is not a host name', field: 'Host' })
  }
}

/**
 * The host name of a request, lower case and without its port; the one a trusted proxy was asked for, which may be anything. Empty when
 * it is none.
 */
export function hostNameOf({ host }: { host: string }): string {
  return hostForm.test(host) ? host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '') : ''
}

/** The path as the router takes it: without scheme and host (RFC 9112 section 3.2.2), and with stray percent signs taken literally. */
export function routable(url: string): string {
  const path = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*(?=[/?]|$)/i, '') || '/'
  if (!path.includes('%')) return path
  const [before, query] = cut(path, '?')
  try {
    decodeURIComponent(before)
    return path
  } catch {
    return before.replaceAll('%', '%25') + query
  }
}

const cut = (text: string, mark: string): [string, string] => {
  const at = text.indexOf(mark)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)]
}
