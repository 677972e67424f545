/**
 * Messages submitted by third-party clients arrive octet for octet, except for the changes listed in docs/smtp.md, and every signature
 * verifies.
 */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { bothPass, signatureVerdicts } from '../support/captured.ts'
import { byHand, byNodemailer, byPython, expectFaithful, from, startWorld, withoutOurs } from './fidelity-world.ts'
import { letters } from './sample-messages.ts'

const isPresent = (program: string) => {
  try {
    return execFileSync(program, ['--version'], { stdio: 'ignore' }) !== undefined
  } catch {
    return false
  }
}

test('five hundred messages of many kinds, from clients of several makes, arrive as they were, and their signatures hold', async () => {
  await expectFaithful([byNodemailer, byHand, ...(isPresent('python3') ? [byPython] : [])])
}, 400_000)

test("only Bcc, Return-Path and Postrider's control fields are taken out, and missing fields put in at the end", async () => {
  await using world = await startWorld()
  const message = (fields: string) => Buffer.from(`${fields}\r\nX-Case: 1\r\n\r\nBcc: body\r\nX-Postrider-Tag: body\r\n`)
  await byHand(world, [
    message(
      `Bcc: a@x.test,\r\n b@x.test\r\nFrom: ${from}\r\nX-POSTRIDER-Tag: t\r\n\tt\r\nReturn-Path: <x@x.test>\r\nResent-Bcc: c@x.test\r\nX-Bcc: stays`,
    ),
  ])
  const [first] = await world.mx.waitFor(1, 15_000)
  const id = /^Message-ID: <(\w{22})@shop\.test>\r$/m.exec(first?.octets.toString() ?? '')?.[1]
  const text = withoutOurs(first?.octets as Buffer).toString()
  expect(text.replace(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000\r$/m, 'Date: now\r')).toBe(
    `From: ${from}\r\nX-Bcc: stays\r\nX-Case: 1\r\nDate: now\r\nMessage-ID: <${id}@shop.test>\r\nMIME-Version: 1.0\r\n\r\nBcc: body\r\nX-Postrider-Tag: body\r\n`,
  )
})

test('a server without 8BITMIME gets the same text in seven bits, signed as it arrives', async () => {
  await using world = await startWorld({ extensions: ['PIPELINING'] })
  const eightBit = letters(60, from).filter((one) => ['eight bits', 'latin-1', 'odd boundary'].includes(one.kind))
  await byHand(
    world,
    eightBit.map((one) => one.octets),
  )
  const arrived = await world.mx.waitFor(eightBit.length, 30_000)
  for (const { octets } of arrived) {
    expect([...octets].every((octet) => octet < 128)).toBe(true)
    expect(await signatureVerdicts(octets, world.published)).toEqual(bothPass)
  }
})
