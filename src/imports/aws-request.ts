/**
 * Signs a GET request without a body for an API of AWS, by Signature Version 4 in the Authorization header. The query must be encoded
 * strictly and in order, and the path must need no encoding.
 */
import { createHash, createHmac } from 'node:crypto'

export interface AwsKey {
  accessKeyId: string
  secret: string
  /** Of temporary keys. */
  sessionToken: string | undefined
}

const algorithm = 'AWS4-HMAC-SHA256'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** RFC 3986 section 2.3: every octet but the unreserved characters. */
export const strictlyEncoded = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

/** The headers to send with the request. */
export function awsHeaders(key: AwsKey, url: string, scope: { region: string; service: string; nowMs: number }): Record<string, string> {
  const { host, pathname, search } = new URL(url)
  const time = new Date(scope.nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const sent = { 'x-amz-date': time, ...(key.sessionToken === undefined ? {} : { 'x-amz-security-token': key.sessionToken }) }
  const signed = Object.entries({ host, ...sent })
  const names = signed.map(([name]) => name).join(';')
  const canonical = ['GET', pathname, search.slice(1), ...signed.map(([name, value]) => `${name}:${value}`), '', names, sha256('')].join(
    '\n',
  )
  const credential = [time.slice(0, 8), scope.region, scope.service, 'aws4_request']
  const signing = credential.reduce(hmac, Buffer.from(`AWS4${key.secret}`))
  const signature = hmac(signing, [algorithm, time, credential.join('/'), sha256(canonical)].join('\n')).toString('hex')
  return {
    ...sent,
    authorization: `${algorithm} Credential=${key.accessKeyId}/${credential.join('/')}, SignedHeaders=${names}, Signature=${signature}`,
  }
}
