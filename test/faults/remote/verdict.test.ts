/** Tests the judges of remote misbehaviours: they report each kind of deviation from the table. */
import { expect, test } from 'vitest'
import { document } from './misbehaviours-document.ts'
import { type Row, untilGivenUp } from './row-type.ts'
import { type EmailState, type PeerCounters, wrongWithEmail, wrongWithPeer } from './verdict.ts'
import { wrongAmongMany, wrongWithTaken } from './verdict-many.ts'

const attempt = (status: string, classification: string | null = null, more: Partial<EmailState['deliveries'][number]> = {}) => ({
  status,
  timestamp: 1,
  classification,
  smtpEnhancedCode: null,
  sentWithSsl: false,
  ...more,
})
const told = (status: string, ...deliveries: EmailState['deliveries']): EmailState => ({ status, timestamp: 0, deliveries })
const seen = (more: Partial<PeerCounters> = {}): PeerCounters => ({
  connections: () => 1,
  taken: () => [],
  written: () => 0,
  keepsAll: true,
  ...more,
})
const givenUp: Row = { name: 'given up', comesTo: untilGivenUp('protocol_error') }
const sent: Row = { name: 'sent', comesTo: ['sent'] }
const asGivenUp = told('hardfail', attempt('softfail', 'protocol_error'), attempt('hardfail', 'protocol_error'))
const asSent = told('sent', attempt('sent'))

test('an email with another outcome than its row is reported, one with the same is not', () => {
  const wrong = (row: Row, what: EmailState) => wrongWithEmail(row, row.comesTo as string[], what)
  expect([wrong(givenUp, asGivenUp), wrong(sent, asSent)]).toEqual([[], []])
  expect(wrong(givenUp, asSent)).toEqual(['came to sent instead of softfail protocol_error, then hardfail protocol_error'])
  expect(wrong(sent, told('pending', attempt('sent')))).toEqual(['ends as pending instead of sent'])
  expect(wrong({ ...sent, secure: true }, asSent)).toEqual(['was sent in the clear'])
  expect(wrong({ ...givenUp, outcomeUnknown: true }, asGivenUp)).toEqual(['has an attempt whose outcome is told as known'])
})

test('a peer that was connected to, given or able to pour in too much is reported', () => {
  const row: Row = { ...sent, maxConnections: 1, taken: 0 }
  expect(wrongWithPeer(row, seen())).toEqual([])
  const peer = seen({ connections: () => 2, taken: () => [{ from: '', content: '' }], written: () => 60_000_000 })
  expect(wrongWithPeer(row, peer)).toHaveLength(3)
})

test('among many, an email that is lost, went another way or was left behind is reported', () => {
  const one = (what?: EmailState) => ({ mark: 7, to: 'ann', ...(what ? { told: what } : {}) })
  expect(wrongAmongMany(givenUp, [one(asGivenUp)])).toEqual([])
  expect(wrongAmongMany(givenUp, [one(asGivenUp), one()])).toEqual(['email 7 is lost'])
  expect(wrongAmongMany(sent, [one(asSent), one(told('softfail', attempt('softfail', 'dns_error')))])).toHaveLength(1)
  expect(wrongAmongMany(sent, [one(asSent), one(told('pending'))])).toEqual(['email 7 to ann came to nothing'])
  expect(wrongAmongMany({ ...sent, othersWait: true }, [one(asSent), one(told('pending'))])).toEqual([])
  expect(wrongAmongMany({ ...sent, othersWait: true }, [one(told('pending'))])).toEqual(['no email came to what one alone comes to'])
})

test('among many, an email that never arrived, or arrived again without a reason, is reported', () => {
  const emails = [{ mark: 7, to: 'ann', told: asSent }]
  const copy = { from: '', content: 'Subject: mark 7.\r\n\r\nHello' }
  const twice = seen({ taken: () => [copy, copy] })
  expect(wrongWithTaken(emails, seen({ taken: () => [copy] }))).toEqual([])
  expect(wrongWithTaken(emails, seen())).toHaveLength(1)
  expect(wrongWithTaken(emails, twice)).toHaveLength(1)
  const unknown = told('sent', attempt('softfail', 'connection_error', { outcomeUnknown: true }), attempt('sent'))
  expect(wrongWithTaken([{ mark: 7, to: 'ann', told: unknown }], twice)).toEqual([])
})

test('every row was measured', () => {
  expect(document()).toContain('| greylisting |')
})
