import { expect, test } from 'vitest'
import type { LastAttempt } from '#emails'
import { type BouncedEmail, postmarkBounce } from './bounces.ts'

const emailOf = (status: 'bounced' | 'hardfail') => ({ status, metadata: null, acceptedAt: new Date(0) }) as BouncedEmail
const attemptOf = (more: Partial<LastAttempt>) => ({ at: new Date(1), output: '', details: '', ...more }) as LastAttempt

test.each([
  ['bounced', undefined, false, 'HardBounce'],
  ['bounced', { status: 'bounced', classification: 'unclassified' }, false, 'HardBounce'],
  ['bounced', { status: 'bounced', classification: 'mailbox_full' }, false, 'SoftBounce'],
  ['hardfail', undefined, false, 'Unknown'],
  ['hardfail', undefined, true, 'HardBounce'],
  ['hardfail', { status: 'softfail', classification: 'mailbox_full' }, false, 'Unknown'],
  ['hardfail', { status: 'hardfail', classification: 'spam_block' }, false, 'SpamNotification'],
] as const)('an email that is %s with the last attempt %j, suppressed: %s, has the type %s', (status, attempt, inactive, Type) => {
  expect(postmarkBounce(emailOf(status), attempt && attemptOf(attempt), inactive)).toMatchObject({ Type, Inactive: inactive })
})
