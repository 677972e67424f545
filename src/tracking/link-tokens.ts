/**
 * Tracking tokens: all facts needed to process an open or a click, and an authentication tag that only this installation can create. An
 * open or a click therefore needs no lookup, a link cannot be guessed, and an attacker cannot create one that leads elsewhere.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Secrets } from '#base'

export type TokenKind = 'open' | 'click' | 'unsubscribe'

export interface Tracked {
  kind: TokenKind
  tenantId: string
  /** The email of one recipient; begins with its time of acceptance. */
  emailId: string
  /** The target of a click, exactly as the sender wrote it; empty for the other kinds. */
  url: string
}

export interface Tokens {
  make(tracked: Tracked): string
  /** Undefined if this installation did not create the token for this kind. */
  read(token: string, kind: TokenKind): Tracked | undefined
}

const letters: Record<TokenKind, string> = { open: 'o', click: 'c', unsubscribe: 'u' }
const tagOctets = 16
const tenantCharacters = 25
const emailCharacters = 22
/** Links too long for a token are not rewritten (`maxUrlLength`), so a longer token is invalid. */
const maxTokenLength = 4096

/** @public Maximum octets of a URL in a token: mail gateways and browsers handle links of about this length safely. */
export const maxUrlLength = 2000

export function openTokens(secrets: Secrets): Tokens {
  const purpose = 'tracking'
  const tagOf = (mac: Buffer) => mac.subarray(0, tagOctets)
  return {
    make({ kind, tenantId, emailId, url }) {
      const text = `${letters[kind]}${tenantId}${emailId}${url}`
      return Buffer.concat([tagOf(secrets.mac(purpose, text)), Buffer.from(text)]).toString('base64url')
    },
    read(token, kind) {
      if (token.length > maxTokenLength || !/^[\w-]+$/.test(token)) return undefined
      const octets = Buffer.from(token, 'base64url')
      if (octets.length < tagOctets + 1 + tenantCharacters + emailCharacters) return undefined
      const text = octets.toString('utf8', tagOctets)
      if (text[0] !== letters[kind]) return undefined
      if (!secrets.macs(purpose, text).some((mac) => timingSafeEqual(octets.subarray(0, tagOctets), tagOf(mac)))) return undefined
      // Each token has one spelling: base64url has spare bits in its last character.
      if (octets.toString('base64url') !== token) return undefined
      const emailId = text.slice(1 + tenantCharacters, 1 + tenantCharacters + emailCharacters)
      return { kind, tenantId: text.slice(1, 1 + tenantCharacters), emailId, url: text.slice(1 + tenantCharacters + emailCharacters) }
    },
  }
}
