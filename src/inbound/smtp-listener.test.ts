import { connect, type PeerCertificate } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { openMemoryBudget } from './memory-budget.ts'
import { makeSelfSigned } from './self-signed.ts'
import { openListener } from './smtp-listener.ts'

const bounds = {
  connections: 10,
  connectionsPerNetwork: 10,
  largestOctets: 1000,
  recipients: 50,
  firstMs: 5000,
  stepMs: 5000,
  messageMs: 5000,
  sessionMs: 10_000,
  errors: 10,
  greetAtOnce: true,
}

test('a changed certificate is shown to the next client, and no TLS older than 1.2 is spoken', async () => {
  const make = (name: string) => makeSelfSigned(name, { nowMs: systemClock.nowMs(), serial: Buffer.alloc(16, 1) })
  const listener = await openListener<undefined>({
    host: '127.0.0.1',
    port: 0,
    setting: 'PORT',
    hostname: 'mail.example.test',
    tls: 'implicit',
    certificate: make('one.test'),
    backend: { sender: async () => {}, recipient: async () => {}, message: async () => 'Ok' },
    bounds,
    budget: openMemoryBudget(),
    clock: systemClock,
    log: silentLog,
  })
  onTestFinished(() => listener.stop())
  const shown = (versions: object = {}) =>
    new Promise<PeerCertificate>((resolve, reject) => {
      const socket = connect({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false, ...versions }, () => {
        resolve(socket.getPeerCertificate())
        socket.destroy()
      })
      socket.once('error', reject)
    })
  expect((await shown()).subject.CN).toBe('one.test')
  listener.useCertificate(make('two.test'))
  expect((await shown()).subject.CN).toBe('two.test')
  await expect(shown({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' })).rejects.toThrow(
    /protocol|alert|version/i,
  )
})
