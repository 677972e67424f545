/**
 * Return paths: an envelope sender for each email, so that whatever comes back names it (VERP); and marks, which do the same in a
 * message's header, for complaints. Their tags can be made by this installation only, they are good for 60 days, and survive being put
 * into lower case on their way.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Secrets } from '#base'

export interface ReturnPaths {
  /** `domain` is where it leads; `sentAtMs` when its 60 days begin. */
  make(emailId: string, domain: string, sentAtMs: number): string
  /**
   * The email that an address names; undefined when it was not made here or is too old. In any case of letters, and at any domain: some
   * servers write the name that an alias leads to, and the tag alone decides.
   */
  read(address: string, nowMs: number): string | undefined
  /** The emails named by addresses in a text, each once. */
  readAll(text: string, nowMs: number): string[]
  /** Names the email too, but is no address: whoever reads a message's header can send no bounces with it. */
  mark(emailId: string, sentAtMs: number): string
  /** The emails named by marks in a text, each once. */
  readMarks(text: string, nowMs: number): string[]
}

const validDays = 60
/** Clocks of two machines may differ over midnight. */
const daysAhead = 1
const dayMs = 86_400_000
/** Days are counted round a circle of 89 years. */
const circleDays = 32_768

const idDigits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** RFC 4648 section 6, in lower case: five bits a character. */
const letters = 'abcdefghijklmnopqrstuvwxyz234567'
/** An email id in groups that a double holds: so many digits of base 62 are so many letters of base 32. */
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
const markOf = { purpose: 'mark', letter: 'm', anywhere: new RegExp(`\\bm[a-z2-7]{${namedLength + tagLength}}\\b(?!@)`, 'gi') }
type Kind = typeof addressOf
const form = new RegExp(`^([bm])([a-z2-7]{${namedLength}})([a-z2-7]{${tagLength}})$`)
/** A report names one; more than a few say nothing more. */
const mostInText = 100

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

/** Only of what carries our tag, so it is what `nameOf` made. */
function readName(named: string): { emailId: string; day: number } {
  let emailId = ''
  let at = 0
  for (const group of groups) {
    emailId += textOf(valueOf(named.slice(at, at + group.letters), letters), idDigits, group.digits)
    at += group.letters
  }
  return { emailId, day: valueOf(named.slice(at), letters) }
}

export function openReturnPaths(secrets: Secrets): ReturnPaths {
  const tagOf = (mac: Buffer) =>
    textOf(mac.readUIntBE(0, 5), letters, 8) + textOf(mac.readUIntBE(5, 5), letters, 8) + textOf(mac.readUIntBE(10, 3) >> 4, letters, 4)

  const make = (kind: Kind, emailId: string, sentAtMs: number): string => {
    const named = nameOf(emailId, Math.floor(sentAtMs / dayMs) % circleDays)
    return kind.letter + named + tagOf(secrets.mac(kind.purpose, named))
  }

  const read = (kind: Kind, text: string, nowMs: number): string | undefined => {
    const [, letter, named, tag] = form.exec(text.toLowerCase()) ?? []
    if (letter !== kind.letter || named === undefined || tag === undefined) return undefined
    const isOurs = secrets.macs(kind.purpose, named).some((mac) => timingSafeEqual(Buffer.from(tag), Buffer.from(tagOf(mac))))
    if (!isOurs) return undefined
    const { emailId, day } = readName(named)
    const age = (Math.floor(nowMs / dayMs) - day + circleDays) % circleDays
    return age <= validDays || age >= circleDays - daysAhead ? emailId : undefined
  }

  const readAll = (kind: Kind, text: string, nowMs: number): string[] => {
    const found = new Set<string>()
    let seen = 0
    for (const [match] of text.matchAll(kind.anywhere)) {
      if (++seen > mostInText) break
      const id = read(kind, match, nowMs)
      if (id !== undefined) found.add(id)
    }
    return [...found]
  }

  return {
    make: (emailId, domain, sentAtMs) => `${make(addressOf, emailId, sentAtMs)}@${domain}`,
    read: (address, nowMs) => read(addressOf, address.slice(0, Math.max(0, address.lastIndexOf('@'))), nowMs),
    readAll: (text, nowMs) => readAll(addressOf, text, nowMs),
    mark: (emailId, sentAtMs) => make(markOf, emailId, sentAtMs),
    readMarks: (text, nowMs) => readAll(markOf, text, nowMs),
  }
}
