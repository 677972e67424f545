import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '#base'
import { ensureCertificate, followCertificate, readCertificate } from './certificate.ts'
import { makeSelfSigned } from './self-signed.ts'

const nowMs = Date.UTC(2026, 10, 21)
const random = (target: Uint8Array) => target.fill(7)

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'postrider-certificate-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

function movedClock(atMs = nowMs) {
  let next = () => {}
  const clock = {
    nowMs: () => atMs,
    monotonicMs: () => 0,
    after(_: number, action: () => void) {
      next = action
      return () => {
        next = () => {}
      }
    },
  }
  return { clock, tick: () => next() }
}

test('a certificate made here is one to OpenSSL, for any host name and any time', () => {
  const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/)
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 10 }),
      fc.integer({ min: 0, max: 4_000_000_000_000 }),
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      (labels, atMs, serial) => {
        const hostname = labels.join('.')
        const made = makeSelfSigned(hostname, { nowMs: atMs, serial: Buffer.from(serial) })
        const read = new X509Certificate(made.cert)
        createSecureContext(made)
        expect(read.verify(read.publicKey)).toBe(true)
        expect(read.checkHost(hostname)).toBe(hostname)
        expect(read.ca).toBe(false)
        const secondMs = Math.floor(atMs / 1000) * 1000
        expect([Date.parse(read.validFrom), Date.parse(read.validTo)]).toEqual([secondMs - 86_400_000, secondMs + 3650 * 86_400_000])
      },
    ),
    { numRuns: 50 },
  )
})

test('it is made once, for its owner only, and anew for another name or when it soon ends', () => {
  const settings = { dataDirectory: folder(), hostname: 'mail.example.test', tlsCert: undefined, tlsKey: undefined }
  const { clock } = movedClock()
  ensureCertificate(settings, { clock, random })
  const first = readCertificate(settings)
  for (const name of ['smtp-key.pem', 'smtp-certificate.pem']) expect(statSync(join(settings.dataDirectory, name)).mode & 0o777).toBe(0o600)
  ensureCertificate(settings, { clock, random })
  expect(readCertificate(settings)).toEqual(first)
  const renamed = { ...settings, hostname: 'other.example.test' }
  ensureCertificate(renamed, { clock, random })
  const second = readCertificate(renamed)
  expect(second.cert).not.toBe(first.cert)
  ensureCertificate(renamed, { clock: movedClock(nowMs + 3630 * 86_400_000).clock, random })
  expect(readCertificate(renamed).cert).not.toBe(second.cert)
})

test("the operator's files are followed when they change, and half a change is not", () => {
  const at = folder()
  const settings = { dataDirectory: at, hostname: 'mail.example.test', tlsCert: join(at, 'c.pem'), tlsKey: join(at, 'k.pem') }
  const make = () => makeSelfSigned('mail.example.test', { nowMs, serial: Buffer.alloc(16, 1) })
  const [one, two] = [make(), make()]
  expect(() => ensureCertificate(settings, { clock: movedClock().clock, random })).toThrow('POSTRIDER_TLS_CERT, POSTRIDER_TLS_KEY')
  writeFileSync(settings.tlsCert, one.cert)
  writeFileSync(settings.tlsKey, one.key)
  ensureCertificate(settings, { clock: movedClock().clock, random })
  expect(readFileSync(settings.tlsCert, 'utf8')).toBe(one.cert)
  const { clock, tick } = movedClock()
  const seen: string[] = []
  const followed = followCertificate(settings, { clock, log: silentLog, now: one, changed: ({ cert }) => seen.push(cert) })
  tick()
  writeFileSync(settings.tlsCert, two.cert)
  tick()
  expect(seen).toEqual([])
  writeFileSync(settings.tlsKey, two.key)
  tick()
  tick()
  expect(seen).toEqual([two.cert])
  followed.stop()
})
