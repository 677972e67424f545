/**
 * What a tracking link carries: all that a hit needs to be understood, and a tag that only this installation can make. So a hit needs
 * no look-up, a link cannot be guessed, and nobody can make one that leads elsewhere.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Secrets } from '#base'

export type TokenKind = 'open' | 'click' | 'unsubscribe'

export interface Tracked {
  kind: TokenKind
  tenantId: string
  /** The email of one recipient; begins with its time of acceptance. */
  emailId: string
  /** Where a click leads, exactly as the sender wrote it; empty for the other kinds. */
  url: string
}

export interface Tokens {
  make(tracked: Tracked): string
  /** Undefined when the token was not made here for this kind. */
  read(token: string, kind: TokenKind): Tracked | undefined
}

const letters: Record<TokenKind, string> = { open: 'o', click: 'c', unsubscribe: 'u' }
const tagOctets = 16
const tenantCharacters = 25
const emailCharacters = 22
/** Longer links are left as they are (`longestUrl`), so a longer token is not ours. */
const longestToken = 4096

/** @public Octets of a URL that is still put into a token: mail gateways and browsers handle links of about this length without harm. */
export const longestUrl = 2000

export function openTokens(secrets: Secrets): Tokens {
  const purpose = 'tracking'
  const tagOf = (mac: Buffer) => mac.subarray(0, tagOctets)
  return {
    make({ kind, tenantId, emailId, url }) {
      const text = `${letters[kind]}${tenantId}${emailId}${url}`
      return Buffer.concat([tagOf(secrets.mac(purpose, text)), Buffer.from(text)]).toString('base64url')
    },
    read(token, kind) {
      if (token.length > longestToken || !/^[\w-]+$/.test(token)) return undefined
      const octets = Buffer.from(token, 'base64url')
      if (octets.length < tagOctets + 1 + tenantCharacters + emailCharacters) return undefined
      const text = octets.toString('utf8', tagOctets)
      if (text[0] !== letters[kind]) return undefined
      if (!secrets.macs(purpose, text).some((mac) => timingSafeEqual(octets.subarray(0, tagOctets), tagOf(mac)))) return undefined
      // One token, one spelling: base64url leaves spare bits in its last character.
      if (octets.toString('base64url') !== token) return undefined
      const emailId = text.slice(1 + tenantCharacters, 1 + tenantCharacters + emailCharacters)
      return { kind, tenantId: text.slice(1, 1 + tenantCharacters), emailId, url: text.slice(1 + tenantCharacters + emailCharacters) }
    },
  }
}
