/** The target of a request: the Host it names, and the path in the router's form. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Refusal } from '#base'

/**
 * RFC 9112 section 3.2: a host name or address with an optional port. An HTTP/1.1 request without a Host, or with several, is answered 400.
 */
const hostForm = /^(\[[0-9a-f:.]+\]|[\w.-]*)(:\d{1,5})?$/i

export function refuseBadHost({
  raw,
  headers,
}: {
  raw: Pick<IncomingMessage, 'httpVersionMajor' | 'httpVersionMinor' | 'rawHeaders'>
  headers: IncomingHttpHeaders
}): void {
  const isOld = raw.httpVersionMajor === 1 && raw.httpVersionMinor === 0
  // Node reports the first of several Host headers; a proxy in front may have used another one.
  const hosts = raw.rawHeaders.filter((name, at) => at % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host').length
  if (headers.host === undefined ? !isOld : hosts > 1 || !hostForm.test(headers.host)) {
    throw new Refusal('validation_error', { message: 'the Host header is missing, duplicated, or not a host name', field: 'Host' })
  }
}

/**
 * The host name of a request, in lower case and without port. Behind a trusted proxy it is the name sent to the proxy, which is unchecked
 * input. Empty if it is not a host name.
 */
export function hostNameOf({ host }: { host: string }): string {
  return hostForm.test(host) ? host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '') : ''
}

/** The path in the router's form: without scheme and host (RFC 9112 section 3.2.2), and with stray percent signs taken literally. */
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
