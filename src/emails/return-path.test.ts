import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openReplyNames, openReturnPaths, replyNameLength } from './return-path.ts'

const ids = openIds(systemRandom)
const paths = openReturnPaths(openSecrets('a secret of tests', systemRandom))
const dayMs = 86_400_000
const moment = fc.integer({ min: Date.UTC(2025, 0), max: Date.UTC(2090, 0) })
const domain = fc.constantFrom('rp.mail.example.com', 'rp.house.test')
const sent = fc.record({ atMs: moment, domain, emailId: fc.nat(2 ** 31).map((second) => ids.emailId(second * 1000)) })
const make = (one: { emailId: string; domain: string; atMs: number }) => paths.make(one.emailId, one.domain, one.atMs)

describe('a return path', () => {
  it('names its email, and leaves room in the 64 octets of a local part', () => {
    fc.assert(
      fc.property(sent, (one) => {
        const address = make(one)
        expect(paths.read(address, one.atMs)).toBe(one.emailId)
        expect(address).toMatch(/^b[a-z2-7]{51}@rp\./)
      }),
    )
  })

  it('names it in any case of letters, and at the name that its own is an alias of', () => {
    fc.assert(
      fc.property(sent, fc.infiniteStream(fc.boolean()), (one, coins) => {
        const [local = ''] = make(one).split('@')
        const mixed = [...local].map((letter) => (coins.next().value ? letter.toUpperCase() : letter)).join('')
        expect(paths.read(`${mixed}@RP.Other.Test`, one.atMs)).toBe(one.emailId)
      }),
    )
  })

  it('is good for 60 days and not for 62', () => {
    fc.assert(
      fc.property(sent, fc.nat(60 * dayMs), fc.integer({ min: 62, max: 20_000 }), (one, laterMs, lateDays) => {
        expect(paths.read(make(one), one.atMs + laterMs)).toBe(one.emailId)
        expect(paths.read(make(one), one.atMs + lateDays * dayMs)).toBeUndefined()
        expect(paths.read(make(one), one.atMs - 3 * dayMs)).toBeUndefined()
      }),
    )
  })

  it('is refused with any character changed, added or left out, and spliced from two', () => {
    fc.assert(
      fc.property(sent, sent, fc.nat(51), fc.constantFrom('a', 'z', '7', '1', '', '.', '+', 'é', 'bb'), (one, other, at, put) => {
        const address = make(one)
        const changed = address.slice(0, at) + put + address.slice(at + 1)
        fc.pre(changed.toLowerCase() !== address)
        expect(paths.read(changed, one.atMs)).toBeUndefined()
        fc.pre(one.emailId !== other.emailId)
        expect(paths.read(address.slice(0, 32) + make({ ...other, atMs: one.atMs }).slice(32), one.atMs)).toBeUndefined()
      }),
    )
  })

  it('and the mark of the same email are not taken for each other', () => {
    fc.assert(
      fc.property(sent, (one) => {
        const mark = paths.traceHeader(one.emailId, one.atMs)
        expect(mark).toMatch(/^m[a-z2-7]{51}$/)
        expect(paths.readTraceHeaders(`X-Message-Mark: ${mark}\r\n (${mark.toUpperCase()})`, one.atMs)).toEqual([one.emailId])
        const [local = ''] = make(one).split('@')
        for (const text of [`${mark}@${one.domain}`, `b${mark.slice(1)}`, `b${mark.slice(1)}@${one.domain}`, local, `m${local.slice(1)}`]) {
          expect(paths.read(text, one.atMs)).toBeUndefined()
          expect(paths.readAll(text, one.atMs)).toEqual([])
          expect(paths.readTraceHeaders(text, one.atMs)).toEqual([])
        }
        expect(paths.readTraceHeaders(mark, one.atMs + 62 * dayMs)).toEqual([])
      }),
    )
  })

  it('and the name in a reply address are not taken for each other; the name is good for a year and one tenant', () => {
    const names = openReplyNames(openSecrets('a secret of tests', systemRandom))
    fc.assert(
      fc.property(sent, fc.nat(365 * dayMs), (one, laterMs) => {
        const name = names.make(one.emailId, 'a', one.atMs)
        expect(name).toHaveLength(replyNameLength)
        expect(names.read(name.toUpperCase(), 'a', one.atMs + laterMs)).toBe(one.emailId)
        expect(names.read(name, 'b', one.atMs)).toBeUndefined()
        expect(names.read(name, 'a', one.atMs + 367 * dayMs)).toBeUndefined()
        const [local = ''] = make(one).split('@')
        for (const text of [local, `r${local.slice(1)}`, paths.traceHeader(one.emailId, one.atMs)])
          expect(names.read(text, 'a', one.atMs)).toBeUndefined()
        for (const text of [`${name}@${one.domain}`, `b${name.slice(1)}@${one.domain}`]) expect(paths.read(text, one.atMs)).toBeUndefined()
      }),
    )
  })

  it('of another installation is refused', () => {
    const others = openReturnPaths(openSecrets('another secret', systemRandom))
    expect(paths.read(others.make(ids.emailId(0), 'rp.house.test', 0), 0)).toBeUndefined()
  })

  it('is found in the text of a report, and a similar address is not', () => {
    fc.assert(
      fc.property(sent, fc.string({ maxLength: 40 }), (one, around) => {
        const forged = `b${'a'.repeat(51)}@rp.house.test`
        const text = `${around} ${forged}\r\nReturn-Path: <${make(one)}>\r\nOriginal-Mail-From: ${make(one).toUpperCase()} ${around}`
        expect(paths.readAll(text, one.atMs)).toEqual([one.emailId])
      }),
    )
  })

  it('is read from anything without a fault', () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ unit: 'binary' }), (text, odd) => {
        expect(paths.read(text, 0)).toBeUndefined()
        expect(paths.readAll(odd, 0)).toEqual([])
      }),
    )
  })
})
