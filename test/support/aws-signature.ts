/** Signs a request as AWS Signature Version 4 describes, with parts that a test may choose: an implementation beside the program's. */
import { createHash, createHmac } from 'node:crypto'

export interface SignedBy {
  accessKeyId: string
  key: string
}

interface Wanted {
  method: string
  url: string
  body?: string | Buffer
  headers?: Record<string, string>
  /** Milliseconds since 1970. */
  at?: number
  service?: string
  region?: string
  /** Announces the body's hash in a header; a text: this one. */
  announces?: boolean | string
}

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const sha256 = (text: string | Buffer, encoding: BufferEncoding = 'utf8') =>
  (typeof text === 'string' ? createHash('sha256').update(text, encoding) : createHash('sha256').update(text)).digest('hex')
/** RFC 3986 section 2.3: every octet but the unreserved characters. */
export const strict = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

/** The headers to send; URLs without dots and encoded with `strict`. */
export function awsHeaders(by: SignedBy, wanted: Wanted): Record<string, string> {
  const { method, url, body = '', headers = {}, at = Date.now(), service = 'ses', region = 'eu-central-1', announces = false } = wanted
  const { host, pathname, search } = new URL(url)
  const time = new Date(at).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const hash = typeof announces === 'string' ? announces : sha256(body)
  const signed: Record<string, string> = {
    ...headers,
    host,
    'x-amz-date': time,
    ...(announces === false ? {} : { 'x-amz-content-sha256': hash }),
  }
  const names = Object.keys(signed).sort()
  const query = search.slice(1).split('&').filter(Boolean).sort()
  const canonical = [
    method,
    pathname.split('/').map(strict).join('/'),
    query.map((pair) => (pair.includes('=') ? pair : `${pair}=`)).join('&'),
    ...names.map((name) => `${name}:${signed[name]?.trim()}`),
    '',
    names.join(';'),
    hash,
  ].join('\n')
  const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`
  const key = scope.split('/').reduce((signing, part) => hmac(signing, part), Buffer.from(`AWS4${by.key}`))
  const signature = hmac(key, ['AWS4-HMAC-SHA256', time, scope, sha256(canonical, 'latin1')].join('\n')).toString('hex')
  const { host: _, ...sent } = signed
  return {
    ...sent,
    authorization: `AWS4-HMAC-SHA256 Credential=${by.accessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
  }
}
