/** The insights of an email: its DKIM signatures as they were sent. The other checks are those of test/message-checks. */
import { describe, expect, test } from 'vitest'
import { checkSignatures, signersOf } from '../../dashboard/src/parts/message-checks.ts'

describe('the signatures of a message', () => {
  test('are read from its head, folded or not, and not from its body', () => {
    const message =
      'DKIM-Signature: v=1; a=rsa-sha256;\r\n d=shop.example; s=a\r\nFrom: a@shop.example\r\ndkim-signature: v=1; d=esp.example;\r\n\r\nDKIM-Signature: d=body.example\r\n'
    expect(signersOf(message)).toEqual(['shop.example', 'esp.example'])
    expect(signersOf('From: a@shop.example\n\nText')).toEqual([])
  })

  test.each<[string, string[], string]>([
    ['ok', ['shop.example'], 'Signed with DKIM for shop.example, the domain of the sender'],
    ['ok', ['esp.example', 'MAIL.SHOP.EXAMPLE'], 'Signed with DKIM for MAIL.SHOP.EXAMPLE, the domain of the sender'],
    ['advice', ['esp.example'], 'Signed with DKIM only for esp.example'],
    ['advice', ['othershop.example'], 'Signed with DKIM only for othershop.example'],
    ['problem', [], 'Not signed with DKIM'],
  ])('are %s for %j', (severity, signedBy, message) => {
    expect(checkSignatures(signedBy, 'Shop <orders@shop.example>')).toEqual({ severity, message: expect.stringContaining(message) })
  })
})
