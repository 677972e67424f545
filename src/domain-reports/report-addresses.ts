/**
 * Report addresses: one for each sending domain, at which receivers' servers deliver DMARC and TLS reports about it. Only this installation
 * can create their authentication tags. They are published in DNS, so they do not expire, and older secrets still verify them.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Secrets } from '#base'

export interface ReportAddresses {
  /** The address for the sending domain with this uuid. */
  make(domainUuid: string): string
  /** The uuid of an address; undefined if this installation did not create it. Case-insensitive, and at any domain. */
  read(address: string): string | undefined
}

/** In place of the uuid of a sending domain: reports about the return-path name of the installation. A random uuid never has this value. */
export const platformUuid = '00000000-0000-0000-0000-000000000000'

const purpose = 'report address'
/** RFC 4648 section 6, in lower case: five bits a character. */
const letters = 'abcdefghijklmnopqrstuvwxyz234567'
/** 128 bits of the uuid, and a tag of 100 bits: 47 octets with the first letter. */
const nameLength = 26
const tagLength = 20
const form = new RegExp(`^d([a-z2-7]{${nameLength}})([a-z2-7]{${tagLength}})$`)

function lettersOf(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest >>= 5n) text = letters[Number(rest & 31n)] + text
  return text
}

function valueOf(text: string): bigint {
  let value = 0n
  for (const letter of text) value = (value << 5n) | BigInt(letters.indexOf(letter))
  return value
}

const tagOf = (mac: Buffer) => lettersOf(BigInt(`0x${mac.toString('hex', 0, 13)}`) >> 4n, tagLength)

/** `domain`: the name below which the installation receives mail. */
export function openReportAddresses(secrets: Pick<Secrets, 'mac' | 'macs'>, domain: string): ReportAddresses {
  return {
    make(domainUuid) {
      const name = lettersOf(BigInt(`0x${domainUuid.replaceAll('-', '')}`), nameLength)
      return `d${name}${tagOf(secrets.mac(purpose, name))}@${domain}`
    },
    read(address) {
      const [, name, tag] = form.exec(address.slice(0, Math.max(0, address.lastIndexOf('@'))).toLowerCase()) ?? []
      if (name === undefined || tag === undefined) return undefined
      const isGenuine = secrets.macs(purpose, name).some((mac) => timingSafeEqual(Buffer.from(tag), Buffer.from(tagOf(mac))))
      if (!isGenuine) return undefined
      const hex = valueOf(name).toString(16).padStart(32, '0')
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
    },
  }
}
