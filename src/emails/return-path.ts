/**
 * Return paths: an envelope sender for each email, so that whatever comes back names it (VERP). Its tag can be made by this
 * installation only, it is good for 60 days, and it survives being put into lower case on its way.
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
const form = new RegExp(`^b([a-z2-7]{${namedLength}})([a-z2-7]{${tagLength}})$`)
const anywhere = new RegExp(`\\bb[a-z2-7]{${namedLength + tagLength}}@`, 'gi')
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
  const tagOf = (named: string) => {
    const mac = secrets.mac('return path', named)
    return (
      textOf(mac.readUIntBE(0, 5), letters, 8) + textOf(mac.readUIntBE(5, 5), letters, 8) + textOf(mac.readUIntBE(10, 3) >> 4, letters, 4)
    )
  }

  const readLocal = (local: string, nowMs: number): string | undefined => {
    const [, named, tag] = form.exec(local.toLowerCase()) ?? []
    if (named === undefined || tag === undefined || !timingSafeEqual(Buffer.from(tag), Buffer.from(tagOf(named)))) return undefined
    const { emailId, day } = readName(named)
    const age = (Math.floor(nowMs / dayMs) - day + circleDays) % circleDays
    return age <= validDays || age >= circleDays - daysAhead ? emailId : undefined
  }

  return {
    make(emailId, domain, sentAtMs) {
      const named = nameOf(emailId, Math.floor(sentAtMs / dayMs) % circleDays)
      return `b${named}${tagOf(named)}@${domain}`
    },
    read: (address, nowMs) => readLocal(address.slice(0, Math.max(0, address.lastIndexOf('@'))), nowMs),
    readAll(text, nowMs) {
      const found = new Set<string>()
      let seen = 0
      for (const [match] of text.matchAll(anywhere)) {
        if (++seen > mostInText) break
        const id = readLocal(match.slice(0, -1), nowMs)
        if (id !== undefined) found.add(id)
      }
      return [...found]
    },
  }
}
