/** The names, the text and the DNS record of the policy (RFC 8461 sections 3.1 and 3.2). Pure functions. */
import { createHash } from 'node:crypto'
import { returnPathDomainOf } from '#domains'

export type PolicyMode = 'testing' | 'enforce' | 'none'

/** One day: the shortest lifetime that large senders honour. A wrong policy is forgotten after it. */
export const maxAgeS = 86_400

/** The host that serves the policy. */
export const policyHostOf = (hostname: string) => `mta-sts.${returnPathDomainOf(hostname.toLowerCase())}`

export const recordNameOf = (hostname: string) => `_mta-sts.${returnPathDomainOf(hostname.toLowerCase())}`

/** The only MX host of the return-path name is the host name. */
export const policyText = (mode: PolicyMode, hostname: string): string =>
  ['version: STSv1', `mode: ${mode}`, `mx: ${hostname.toLowerCase()}`, `max_age: ${maxAgeS}`].map((line) => `${line}\r\n`).join('')

/** Its id follows from the text, and has a form by which Postrider recognises its own records. */
export const recordText = (mode: PolicyMode, hostname: string): string =>
  `v=STSv1; id=pr${createHash('sha256').update(policyText(mode, hostname)).digest('hex').slice(0, 24)};`

export const isOwnRecord = (text: string) => /^v=STSv1; id=pr[0-9a-f]{24};$/.test(text)
