import { expect, test } from 'vitest'
import type { DnsAnswer } from '#net'
import { dmarcPolicyOf, findDmarcRecord, isDmarcRecord } from './dmarc-record.ts'

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

const policy = 'v=DMARC1; p=none'

test.each<[string, Record<string, string[]>, object]>([
  ['a.b.test', {}, { kind: 'none', at: '_dmarc.b.test' }],
  ['a.b.test', { '_dmarc.b.test': [policy] }, { kind: 'policy', at: '_dmarc.b.test', records: [policy] }],
  ['a.b.test', { '_dmarc.a.b.test': ['text'], '_dmarc.b.test': [policy] }, { kind: 'policy', at: '_dmarc.b.test', records: [policy] }],
  [
    'a.b.test',
    { '_dmarc.a.b.test': [policy, 'text', policy], '_dmarc.b.test': [policy] },
    { kind: 'several', at: '_dmarc.a.b.test', records: [policy, policy] },
  ],
  [
    'a.b.test',
    { '_dmarc.a.b.test': ['v=DMARC1'], '_dmarc.b.test': [policy] },
    { kind: 'no policy', at: '_dmarc.a.b.test', records: ['v=DMARC1'] },
  ],
  ['a.x.b.test', { '_dmarc.x.b.test': [policy] }, { kind: 'none', at: '_dmarc.b.test' }],
  ['com', {}, { kind: 'none', at: '_dmarc.com' }],
])('the record that covers %s with %j is %j', async (name, zone, expected) => {
  const txt = async (at: string): Promise<DnsAnswer<string[]>> => (zone[at] ? { kind: 'found', value: zone[at] } : { kind: 'nxdomain' })
  expect(await findDmarcRecord(name, txt)).toEqual(expected)
})

test('a failed lookup is not taken for a missing record', async () => {
  const lookup = await findDmarcRecord('a.b.test', async (at) =>
    at === '_dmarc.a.b.test' ? { kind: 'none' } : { kind: 'trouble', code: 'SERVFAIL' },
  )
  expect(lookup).toEqual({ kind: 'trouble', at: '_dmarc.b.test', code: 'SERVFAIL' })
})
