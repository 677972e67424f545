/** Mail that strangers can send to the operator. */
import { expect, test } from 'vitest'
import { silentLog } from '#base'
import { openIncoming } from '../../src/inbound/incoming-mail.ts'
import { handMoved } from '../support/test-clock.ts'

test('one network sends five messages in an hour to the postmaster, and all together twenty', async () => {
  const clock = handMoved()
  const incoming = openIncoming({
    returns: { accepts: async () => 'unknown', take: async () => undefined },
    accept: { forward: async () => undefined } as never,
    isOurName: async () => true,
    postmaster: 'operator@example.org',
    clock,
    log: silentLog,
  })
  const octets = Buffer.from('From: a@example.net\r\n\r\nHello')
  const sendFrom = (address: string) => {
    const visit = { id: 'v', address, greeting: 'x.test', secure: false, login: undefined, from: 'a@example.net', parameters: {} }
    return incoming.message(octets, { ...visit, recipients: ['abuse@mail.example.com'] }).catch((error: Error) => error.message)
  }
  const repliesTo = async (addresses: readonly string[]) => {
    const replies: string[] = []
    for (const address of addresses) replies.push(await sendFrom(address))
    return replies.filter((reply) => reply === 'Ok').length
  }
  expect(await repliesTo(Array(10).fill('192.0.2.1'))).toBe(5)
  expect(await repliesTo(Array.from({ length: 10 }, (_, nth) => `2001:db8:1:1::${nth + 1}`))).toBe(5)
  // Another customer of a provider whose customers share a /48.
  expect(await repliesTo(['2001:db8:1:2::1'])).toBe(1)
  expect(await repliesTo(Array.from({ length: 30 }, (_, nth) => `198.51.100.${nth + 1}`))).toBe(9)
  clock.moveMs(3_600_001)
  expect(await repliesTo(['192.0.2.1'])).toBe(1)
})
