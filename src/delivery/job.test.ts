import { expect, test } from 'vitest'
import type { Claimed } from '#spool'
import { type Job, jobPerRecipient, jobsOf, type PreparedMessage, separateJob, transactionsOf, withRecipients } from './job.ts'

const claimedFor = (recipient: string, more: Partial<Claimed> = {}): Claimed => ({
  tenantId: 't',
  emailId: recipient,
  contentId: 'c',
  shard: 0,
  epoch: 1,
  recipient,
  recipientDomain: 'one.example',
  attempts: 0,
  manualRetry: false,
  test: false,
  sizeOctets: 1,
  holdReason: null,
  clockOffsetMs: 0,
  scheduledAt: null,
  ...more,
})
const addressesOf = ({ recipients }: Job) => recipients.map((one) => one.recipient)
const jobFor = (...recipients: string[]) => jobsOf(recipients.map((one) => claimedFor(one)))[0] as Job

test.each<[string, Claimed[], string[][]]>([
  ['of one submission and domain share a job', [claimedFor('a'), claimedFor('b')], [['a', 'b']]],
  [
    'of another submission have their own job',
    [claimedFor('a'), claimedFor('b', { contentId: 'd' }), claimedFor('c')],
    [['a', 'c'], ['b']],
  ],
  ['of another domain have their own job', [claimedFor('a'), claimedFor('b', { recipientDomain: 'two.example' })], [['a'], ['b']]],
  ['claimed under another epoch have their own job', [claimedFor('a'), claimedFor('b', { epoch: 2 })], [['a'], ['b']]],
])('recipients %s', (_, claimed, expected) => {
  expect(jobsOf(claimed).map(addressesOf)).toEqual(expected)
})

test('a job has at most 100 recipients', () => {
  const claimed = Array.from({ length: 250 }, (_, n) => claimedFor(`${n}`))
  expect(jobsOf(claimed).map(({ recipients }) => recipients.length)).toEqual([100, 100, 50])
})

test('addresses that need SMTPUTF8 have their own job, so that a server without it gets the others', () => {
  const jobs = jobsOf(['a', 'ü', 'c', 'ö'].map((one) => claimedFor(one)))
  expect(jobs.map((one) => [one.needsSmtpUtf8, addressesOf(one)])).toEqual([
    [false, ['a', 'c']],
    [true, ['ü', 'ö']],
  ])
  expect(jobs.flatMap(jobPerRecipient).map((one) => one.needsSmtpUtf8)).toEqual([false, false, true, true])
})

test('fewer recipients of the same job keep its state, and a separate job has a copy', () => {
  const job = jobFor('a', 'b', 'c')
  job.state.poolHops = 2
  const same = withRecipients(job, job.recipients.slice(0, 1))
  const separate = separateJob(job, job.recipients.slice(1))
  expect([same, separate].map((one) => one && addressesOf(one))).toEqual([['a'], ['b', 'c']])
  expect(same?.state).toBe(job.state)
  expect(separate?.state).not.toBe(job.state)
  expect(separate?.state).toEqual(job.state)
  expect([withRecipients(job, []), separateJob(job, [])]).toEqual([undefined, undefined])
})

test('if each message differs, the first recipient keeps the state, and the others may be returned by a connection once more', () => {
  const job = jobFor('a', 'b')
  job.state.retriedOnce = true
  const [first, second] = jobPerRecipient(job)
  expect(first.state).toBe(job.state)
  expect(second?.state).toEqual({ ...job.state, retriedOnce: false })
})

test('recipients with their own envelope senders have their own transactions', () => {
  const job = jobFor('a', 'b')
  const message = { returnPathOf: ({ recipient }: Claimed) => recipient } as PreparedMessage
  expect(transactionsOf(job, message).map(addressesOf)).toEqual([['a'], ['b']])
  expect(transactionsOf(job, { ...message, returnPathOf: null })).toEqual([job])
})
