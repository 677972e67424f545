/** Where a request is meant to go: the Host it names, and the path in the form the router takes. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Refusal } from '#base'

/** RFC 9112 section 3.2: a host name or address, with a port or not; a request of HTTP/1.1 without one is answered 400. */
const hostForm = /^(\[[0-9a-f:.]+\]|[\w.-]*)(:\d{1,5})?$/i

export function refuseBadHost({
  raw,
  headers,
}: {
  raw: Pick<IncomingMessage, 'httpVersionMajor' | 'httpVersionMinor'>
  headers: IncomingHttpHeaders
}): void {
  const isOld = raw.httpVersionMajor === 1 && raw.httpVersionMinor === 0
  if (headers.host === undefined ? !isOld : !hostForm.test(headers.host)) {
    throw new Refusal('validation_error', { message: 'the Host header is missing or is not a host name', field: 'Host' })
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
