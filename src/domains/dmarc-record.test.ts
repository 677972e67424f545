import { expect, test } from 'vitest'
import { dmarcPolicyOf, isDmarcRecord } from './dmarc-record.ts'

test.each([
  ['v=DMARC1; p=none', 'none'],
  ['v=DMARC1;p=Quarantine;rua=mailto:a@b.test', 'quarantine'],
  ['v = DMARC1 ; p = reject ; sp=none', 'reject'],
  ['v=DMARC1; sp=reject', null],
  ['v=DMARC1; p=rejected', null],
  ['v=DMARC1; np=reject; rua=mailto:p=none@b.test', null],
  ['v=DMARC1', null],
])('the policy of %s is %s', (record, policy) => {
  expect(isDmarcRecord(record)).toBe(true)
  expect(dmarcPolicyOf(record)).toBe(policy)
})

test.each(['v=DMARC10; p=none', 'V=DMARC1; p=none', ' v=DMARC1', 'p=none; v=DMARC1', 'v=spf1 -all'])('%s is not a DMARC record', (text) => {
  expect(isDmarcRecord(text)).toBe(false)
})
