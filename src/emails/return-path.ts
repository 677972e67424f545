/**
 * Return paths: one envelope sender for each email, so that any bounce identifies it (VERP); trace headers, which identify it in
 * complaints; and the names in reply addresses. Only this installation can create their authentication tags. They are valid for 60 days,
 * those of replies for a year, and survive conversion to lower case.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Secrets } from '#base'

export interface ReturnPaths {
  /** `domain`: the domain of the return path; `sentAtMs`: the start of its 60 days. */
  make(emailId: string, domain: string, sentAtMs: number): string
  /**
   * The email of an address; undefined if this installation did not create it or it has expired. Case-insensitive, and at any domain: some
   * servers write the name that an alias leads to, and the tag alone decides.
   */
  read(address: string, nowMs: number): string | undefined
  /** The emails of the addresses in a text, each once. */
  readAll(text: string, nowMs: number): string[]
  /** Identifies the email too, but is not an address: a reader of a message's header cannot send bounces with it. */
  traceHeader(emailId: string, sentAtMs: number): string
  /** The emails of the trace headers in a text, each once. */
  readTraceHeaders(text: string, nowMs: number): string[]
}

const validDays = 60
/** People answer old mail. */
const replyValidDays = 365
/** The clocks of two machines may differ at midnight. */
const daysAhead = 1
const dayMs = 86_400_000
/** Days are counted modulo this number, which covers 89 years. */
const circleDays = 32_768

const idDigits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** RFC 4648 section 6, in lower case: five bits a character. */
const letters = 'abcdefghijklmnopqrstuvwxyz234567'
/** An email id in groups that fit in a double: the number of base 62 digits and of base 32 letters in each group. */
const groups = [
  { digits: 8, letters: 10 },
  { digits: 7, letters: 9 },
  { digits: 7, letters: 9 },
] as const
const dayLetters = 3
const namedLength = 31
/** 100 bits. */
const tagLength = 20

/** RFC 5321 section 4.5.3.1.1 allows 64 octets before the @; these are 52. */
const addressOf = { purpose: 'return path', letter: 'b', anywhere: new RegExp(`\\bb[a-z2-7]{${namedLength + tagLength}}(?=@)`, 'gi') }
const traceHeaderForm = { purpose: 'mark', letter: 'm', anywhere: new RegExp(`\\bm[a-z2-7]{${namedLength + tagLength}}\\b(?!@)`, 'gi') }
const replyForm = { purpose: 'reply', letter: 'r' }
type Kind = Pick<typeof addressOf, 'purpose' | 'letter'>
type KindInText = typeof addressOf
const form = new RegExp(`^([bmr])([a-z2-7]{${namedLength}})([a-z2-7]{${tagLength}})$`)
/** A report names one email; more than a few add no information. */
const maxAddressesInText = 100

function textOf(value: number, digits: string, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / digits.length)) text = digits[rest % digits.length] + text
  return text
}

function valueOf(text: string, digits: string): number {
  let value = 0
  for (const digit of text) value = value * digits.length + digits.indexOf(digit)
  return value
}

function nameOf(emailId: string, day: number): string {
  let named = ''
  let at = 0
  for (const group of groups) {
    named += textOf(valueOf(emailId.slice(at, at + group.digits), idDigits), letters, group.letters)
    at += group.digits
  }
  return named + textOf(day, letters, dayLetters)
}

/** Called only after the tag was verified, so the input was made by `nameOf`. */
function readName(named: string): { emailId: string; day: number } {
  let emailId = ''
  let at = 0
  for (const group of groups) {
    emailId += textOf(valueOf(named.slice(at, at + group.letters), letters), idDigits, group.digits)
    at += group.letters
  }
  return { emailId, day: valueOf(named.slice(at), letters) }
}

const tagOf = (mac: Buffer) =>
  textOf(mac.readUIntBE(0, 5), letters, 8) + textOf(mac.readUIntBE(5, 5), letters, 8) + textOf(mac.readUIntBE(10, 3) >> 4, letters, 4)

/** `about`: a text that is signed too, and not part of the result. */
function makeSigned(secrets: Secrets, { letter, purpose }: Kind, emailId: string, sentAtMs: number, about = ''): string {
  const named = nameOf(emailId, Math.floor(sentAtMs / dayMs) % circleDays)
  return letter + named + tagOf(secrets.mac(purpose, about + named))
}

function readSigned(secrets: Secrets, kind: Kind, text: string, nowMs: number, days: number, about = ''): string | undefined {
  const [, letter, named, tag] = form.exec(text.toLowerCase()) ?? []
  if (letter !== kind.letter || named === undefined || tag === undefined) return undefined
  const isOurs = secrets.macs(kind.purpose, about + named).some((mac) => timingSafeEqual(Buffer.from(tag), Buffer.from(tagOf(mac))))
  if (!isOurs) return undefined
  const { emailId, day } = readName(named)
  const age = (Math.floor(nowMs / dayMs) - day + circleDays) % circleDays
  return age <= days || age >= circleDays - daysAhead ? emailId : undefined
}

/** Names of emails in the addresses to which their recipients reply; each is valid for one tenant. */
export interface ReplyNames {
  /** 52 letters and digits. `sentAtMs`: the start of its year. */
  make(emailId: string, tenantId: string, sentAtMs: number): string
  /** The email; undefined if this installation did not create the name for this tenant, or it has expired. Case-insensitive. */
  read(name: string, tenantId: string, nowMs: number): string | undefined
}

export const replyNameLength = 1 + namedLength + tagLength

export const openReplyNames = (secrets: Secrets): ReplyNames => ({
  make: (emailId, tenantId, sentAtMs) => makeSigned(secrets, replyForm, emailId, sentAtMs, `${tenantId} `),
  read: (name, tenantId, nowMs) => readSigned(secrets, replyForm, name, nowMs, replyValidDays, `${tenantId} `),
})

export function openReturnPaths(secrets: Secrets): ReturnPaths {
  const make = (kind: Kind, emailId: string, sentAtMs: number) => makeSigned(secrets, kind, emailId, sentAtMs)
  const read = (kind: Kind, text: string, nowMs: number) => readSigned(secrets, kind, text, nowMs, validDays)

  const readAll = (kind: KindInText, text: string, nowMs: number): string[] => {
    const found = new Set<string>()
    let seen = 0
    for (const [match] of text.matchAll(kind.anywhere)) {
      if (++seen > maxAddressesInText) break
      const id = read(kind, match, nowMs)
      if (id !== undefined) found.add(id)
    }
    return [...found]
  }

  return {
    make: (emailId, domain, sentAtMs) => `${make(addressOf, emailId, sentAtMs)}@${domain}`,
    read: (address, nowMs) => read(addressOf, address.slice(0, Math.max(0, address.lastIndexOf('@'))), nowMs),
    readAll: (text, nowMs) => readAll(addressOf, text, nowMs),
    traceHeader: (emailId, sentAtMs) => make(traceHeaderForm, emailId, sentAtMs),
    readTraceHeaders: (text, nowMs) => readAll(traceHeaderForm, text, nowMs),
  }
}
