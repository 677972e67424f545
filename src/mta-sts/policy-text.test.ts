import { parsePolicy } from 'mailauth/lib/mta-sts.js'
import { describe, expect, test } from 'vitest'
import { isForeign } from './policy-records.ts'
import { isOwnRecord, maxAgeS, policyHostOf, policyText, recordNameOf, recordText } from './policy-text.ts'

const modes = ['testing', 'enforce', 'none'] as const

describe('the policy', () => {
  test.each(modes)('of mode %s is valid for a strict parser of another project', (mode) => {
    expect(parsePolicy(policyText(mode, 'Mail.Example.com'), { strict: true })).toMatchObject({
      version: 'STSv1',
      mode,
      mx: ['mail.example.com'],
      maxAge: maxAgeS,
    })
    expect(policyText(mode, 'mail.example.com')).toMatch(/^(?:[a-z_]+: \S+\r\n){4}$/)
  })

  test('has an id of its text, in the form of a record of Postrider', () => {
    const records = [...modes.map((mode) => recordText(mode, 'mail.example.com')), recordText('none', 'mail.example.net')]
    expect(new Set(records).size).toBe(4)
    expect(recordText('enforce', 'MAIL.example.com')).toBe(recordText('enforce', 'mail.example.com'))
    for (const record of records) {
      expect(record).toMatch(/^v=STSv1; id=[a-z0-9]{1,32};$/)
      expect(isOwnRecord(record)).toBe(true)
    }
  })

  test('has two names below the return-path name', () => {
    expect(policyHostOf('Mail.example.com')).toBe('mta-sts.rp.mail.example.com')
    expect(recordNameOf('mail.example.com')).toBe('_mta-sts.rp.mail.example.com')
  })

  test('of the operator is recognised as such', () => {
    for (const text of ['v=STSv1; id=20260101', 'v=STSv1;id=pr000000000000000000000000;', 'v=STSv1; id=pr1;']) {
      expect(isForeign({ kind: 'found', value: [text] })).toBe(true)
      expect(isOwnRecord(text)).toBe(false)
    }
  })

  test('is not one that senders ignore, or that Postrider published', () => {
    const value = ['v=spf1 -all', 'V=STSV1; id=20260101', recordText('testing', 'mail.example.com')]
    expect(isForeign({ kind: 'found', value })).toBe(false)
  })
})
