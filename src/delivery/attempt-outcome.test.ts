import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { silentLog } from '#base'
import type { Failure, Reply } from '#smtp'
import type { Claimed } from '#spool'
import {
  type AttemptContext,
  type AttemptResult,
  decideOutcome,
  noRemote,
  remoteOf,
  resultOf,
  resultOfFailure,
  resultOfReply,
} from './attempt-outcome.ts'
import { unpreparedBy } from './prepare-messages.ts'

const atMs = Date.UTC(2026, 10, 20, 12)
const minuteMs = 60_000
const host = { host: 'mx.example.org', preference: 10, tls: 'opportunistic', policy: 'opportunistic' } as const
const encryption = { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', certificate: 'self-signed' }
const remote = remoteOf({ host: 'mx.example.org', address: '192.0.2.7', port: 25 }, { secure: true, tls: encryption }, host)

const claimed = (wanted: Partial<Claimed> = {}): Claimed => ({
  tenantId: 't',
  emailId: 'e',
  contentId: 'c',
  shard: 1,
  epoch: 1,
  recipient: 'ada@example.org',
  recipientDomain: 'example.org',
  attempts: 0,
  manualRetry: false,
  test: false,
  sizeOctets: 100,
  holdReason: null,
  clockOffsetMs: 0,
  scheduledAt: null,
  ...wanted,
})

const facts: AttemptContext = {
  schedule: { baseMs: 5 * minuteMs, maxMs: 360 * minuteMs, maxAttempts: 30 },
  random: () => 0.5,
  atMs,
  durationMs: 12.6,
  remote,
  conversation: 'what was said',
  unknownRetry: 'by schedule',
}

const reply = (code: number, text: string, enhanced: string | null = null): Reply => ({ code, enhanced, text: `${code} ${text}` })
const accepted = resultOf({ state: 'accepted', reply: reply(250, '2.0.0 queued', '2.0.0') })
const refused = (code: number, text: string, enhanced: string | null = null) => resultOfReply(reply(code, text, enhanced))
const unknownUser = refused(550, '5.1.1 user unknown', '5.1.1')
const greylisted = refused(451, '4.7.1 try again later', '4.7.1')

const failure = (wanted: Partial<Failure>): Failure => ({
  stage: 'connect',
  kind: 'refused',
  message: 'the connection was refused',
  transcript: '',
  ...wanted,
})
const lost = resultOf({
  state: 'unknown',
  failure: failure({ stage: 'final', kind: 'dropped', message: 'the peer closed the connection' }),
})

describe('the meaning of a remote answer', () => {
  test('the reply code, and not its text, distinguishes a permanent refusal from a temporary one', () => {
    expect(unknownUser).toMatchObject({ kind: 'permanent', classification: 'invalid_recipient', enhanced: '5.1.1' })
    expect(refused(450, '5.1.1 user unknown', '5.1.1')).toMatchObject({ kind: 'temporary' })
  })

  test('a refused recipient is judged by its own reply', () => {
    const result = resultOf({ state: 'refused', stage: 'rcpt', reply: reply(550, '5.1.1 user unknown', '5.1.1') })
    expect(result).toEqual(unknownUser)
  })

  test('a lost final reply is unknown', () => {
    expect(lost).toMatchObject({ kind: 'unknown', reply: null, message: 'the peer closed the connection' })
  })

  test.each(['refused', 'timeout', 'dropped', 'aborted', 'reply'] as const)('a connection that ends by "%s" is tried again', (kind) => {
    expect(resultOfFailure(failure({ kind }))).toMatchObject({ kind: 'temporary', classification: 'connection_error', reply: null })
  })

  test('trouble with TLS and with the protocol is tried again under a name of its own', () => {
    expect(resultOfFailure(failure({ stage: 'tls', kind: 'tls' }))).toMatchObject({ kind: 'temporary', classification: 'tls_required' })
    expect(resultOfFailure(failure({ kind: 'protocol' }))).toMatchObject({ kind: 'temporary', classification: 'protocol_error' })
  })

  test.each([
    ['size', 'message_too_large', '5.3.4'],
    ['smtputf8', 'protocol_error', '5.6.7'],
    ['eightbitmime', 'protocol_error', '5.6.3'],
    ['loop', 'protocol_error', '5.4.6'],
  ] as const)('a message that cannot be offered for "%s" fails permanently as %s, %s, in any wording', (kind, classification, enhanced) => {
    expect(resultOfFailure(failure({ kind, message: 'size' }))).toMatchObject({ kind: 'permanent', classification, enhanced })
    expect(resultOfFailure(failure({ kind, message: '' }))).toMatchObject({ kind: 'permanent', classification, enhanced })
  })

  test.each([
    ['greeting', 'temporary'],
    ['ehlo', 'temporary'],
    ['mail', 'permanent'],
    ['data', 'permanent'],
  ] as const)('a 554 that ends the conversation at "%s" is %s: before MAIL it is about no message', (stage, kind) => {
    const ended = (code: number) => resultOfFailure(failure({ stage, kind: 'reply', reply: reply(code, 'no') }))
    expect([ended(554).kind, ended(421).kind]).toEqual([kind, 'temporary'])
  })

  test('no reply before MAIL ends an email while the schedule has attempts left, with any text', () => {
    const stages = fc.constantFrom('connect' as const, 'greeting' as const, 'ehlo' as const, 'tls' as const, 'auth' as const)
    const texts = fc.oneof(fc.string(), fc.constantFrom('5.1.1 user unknown', '5.7.1 blocked', '5.2.1 mailbox disabled', '5.1.10 null MX'))
    fc.assert(
      fc.property(stages, fc.integer({ min: 400, max: 599 }), texts, (stage, code, text) => {
        const attemptResult = resultOfFailure(failure({ stage, kind: 'reply', reply: reply(code, text) }))
        expect(decideOutcome(claimed(), attemptResult, facts)).toMatchObject({ status: 'softfail', suppress: null })
      }),
    )
  })

  test('no reply before RCPT suppresses a recipient, with any text', () => {
    const stages = fc.constantFrom(
      'connect' as const,
      'greeting' as const,
      'ehlo' as const,
      'tls' as const,
      'auth' as const,
      'mail' as const,
    )
    const texts = fc.oneof(
      fc.string(),
      fc.constantFrom('5.1.1 user unknown', '5.2.1 mailbox disabled', '5.1.10 null MX', '521 no mail here'),
    )
    fc.assert(
      fc.property(stages, fc.integer({ min: 400, max: 599 }), texts, (stage, code, text) => {
        for (const attemptResult of [
          resultOf({ state: 'refused', stage, reply: reply(code, text, /^5\.\d\.\d+/.exec(text)?.[0] ?? null) }),
          resultOfFailure(failure({ stage, kind: 'reply', reply: reply(code, text) })),
        ])
          expect(decideOutcome(claimed(), attemptResult, facts).suppress).toBe(null)
      }),
    )
  })

  test.each(['greeting', 'ehlo', 'mail'] as const)('a refusal at "%s" is not about the recipient, and suppresses none', (stage) => {
    for (const text of ['5.1.1 user unknown', '5.2.1 mailbox disabled', '5.3.2 no mail service here']) {
      const attemptResult = resultOf({ state: 'refused', stage, reply: reply(550, text, text.slice(0, 5)) })
      const status = stage === 'mail' ? 'hardfail' : 'softfail'
      expect(decideOutcome(claimed(), attemptResult, facts)).toMatchObject({ status, classification: 'policy_violation', suppress: null })
    }
  })

  test.each([
    ['invalid_recipient', '5.1.1 <ada@example.org>: Recipient address rejected: User unknown', 'hard fail'],
    ['no_mailbox', '5.2.1 The email account that you tried to reach is disabled', 'hard fail'],
    ['not_accepting_mail', '5.1.10 Recipient address has null MX', 'hard fail'],
    ['mailbox_full', '5.2.2 mailbox full', null],
    ['message_too_large', '5.3.4 message too big', null],
    ['spam_block', '5.1.1 your host 192.0.2.1 is listed at bl.spamcop.net', null],
    ['policy_violation', "5.7.26 Unauthenticated email is not accepted due to domain's DMARC policy", null],
    ['tls_required', '5.7.10 encryption needed', null],
    ['temporarily_unavailable', '5.1.1 greylisted, try again later', null],
    ['unclassified', '5.0.0 no', null],
  ] as const)('a reply that means %s suppresses as the contract requires', (name, text, suppress) => {
    const attemptResult = refused(550, text, text.split(' ')[0])
    expect(decideOutcome(claimed(), attemptResult, facts)).toMatchObject({ status: 'hardfail', classification: name, suppress })
  })

  test.each([535, 454])('a relay that refuses the password with %i keeps the mail waiting and is quoted', (code) => {
    const answer = reply(code, '5.7.8 wrong password', '5.7.8')
    const attemptResult = resultOfFailure(
      failure({ stage: 'auth', kind: 'reply', reply: answer, message: `login refused: ${answer.text}` }),
    )
    expect(decideOutcome(claimed(), attemptResult, facts)).toMatchObject({
      status: 'softfail',
      classification: 'connection_error',
      suppress: null,
      details: expect.stringContaining('wrong password'),
    })
  })
})

describe('the consequences of an outcome', () => {
  test('accepted mail is sent and does not come back', () => {
    expect(decideOutcome(claimed(), accepted, facts)).toEqual({
      claimed: claimed(),
      status: 'sent',
      dueAtMs: null,
      holdReason: null,
      atMs,
      durationMs: 13,
      details: 'Message for ada@example.org accepted by 192.0.2.7:25 (mx.example.org)',
      output: '250 2.0.0 queued',
      code: 250,
      enhanced: '2.0.0',
      secure: true,
      tls: { ...encryption, policy: 'opportunistic', mtaStsTestingFailure: null },
      classification: null,
      classificationCode: null,
      remoteHost: 'mx.example.org',
      source: null,
      transport: null,
      outcomeUnknown: false,
      conversation: 'what was said',
      suppress: null,
      unsuppress: false,
    })
  })

  test('only a manual retry that is accepted takes the recipient off the list', () => {
    const manualRetry = claimed({ manualRetry: true })
    expect(
      [accepted, greylisted, unknownUser, lost].map((attemptResult) => decideOutcome(manualRetry, attemptResult, facts).unsuppress),
    ).toEqual([true, false, false, false])
  })

  test('a temporary no is tried again by the schedule', () => {
    expect(decideOutcome(claimed(), greylisted, facts)).toMatchObject({
      status: 'softfail',
      dueAtMs: atMs + 1.3 * 5 * minuteMs,
      code: 451,
      suppress: null,
    })
    expect(decideOutcome(claimed({ attempts: 1 }), greylisted, facts).dueAtMs).toBe(atMs + 1.69 * 5 * minuteMs)
  })

  test('the attempt that reaches the most is the last, and suppresses', () => {
    expect(decideOutcome(claimed({ attempts: 28 }), greylisted, facts)).toMatchObject({ status: 'softfail', suppress: null })
    expect(decideOutcome(claimed({ attempts: 29 }), greylisted, facts)).toMatchObject({
      status: 'hardfail',
      dueAtMs: null,
      suppress: 'too many soft fails',
    })
  })

  test("Postrider's own fault suppresses no recipient", () => {
    const unprepared = unpreparedBy(new Error('the content is broken'), { contentId: 'c' }, silentLog)
    if (unprepared.kind !== 'retry') throw new Error(`it is ${unprepared.kind}`)
    expect(decideOutcome(claimed(), unprepared.attemptResult, facts)).toMatchObject({ status: 'softfail', suppress: null })
    expect(decideOutcome(claimed({ attempts: 29 }), unprepared.attemptResult, facts)).toMatchObject({ status: 'hardfail', suppress: null })
  })

  test("a permanent no suppresses only for the recipient's own fault", () => {
    expect(decideOutcome(claimed(), unknownUser, facts)).toMatchObject({ status: 'hardfail', dueAtMs: null, suppress: 'hard fail' })
    const names = [
      'invalid_recipient',
      'no_mailbox',
      'not_accepting_mail',
      'mailbox_full',
      'spam_block',
      'dns_error',
      'unclassified',
    ] as const
    const suppressed = names.filter((name) => decideOutcome(claimed(), { ...unknownUser, classification: name }, facts).suppress !== null)
    expect(suppressed).toEqual(['invalid_recipient', 'no_mailbox', 'not_accepting_mail'])
  })

  test('a suppressed recipient is held for seven days', () => {
    const attemptResult: AttemptResult = { kind: 'suppressed', reply: null, classification: null, enhanced: null, message: '' }
    expect(decideOutcome(claimed(), attemptResult, { ...facts, remote: noRemote })).toMatchObject({
      status: 'held',
      dueAtMs: atMs + 7 * 24 * 60 * minuteMs,
      details: 'ada@example.org is on the suppression list',
      output: '',
      code: null,
      suppress: null,
    })
  })

  test('an unknown outcome is recorded as unknown, without a code or an output', () => {
    expect(decideOutcome(claimed(), lost, facts)).toMatchObject({
      status: 'softfail',
      outcomeUnknown: true,
      output: '',
      code: null,
      details: expect.stringMatching(/^outcome unknown: /),
      dueAtMs: atMs + 1.3 * 5 * minuteMs,
      suppress: null,
    })
  })

  test('an unknown outcome of a lost process is tried again at once', () => {
    expect(decideOutcome(claimed(), lost, { ...facts, unknownRetry: 'at once' }).dueAtMs).toBe(atMs)
  })

  test('an unknown outcome of the last attempt ends it and suppresses no recipient, because it may have arrived', () => {
    expect(decideOutcome(claimed({ attempts: 29 }), lost, facts)).toMatchObject({
      status: 'hardfail',
      outcomeUnknown: true,
      dueAtMs: null,
      suppress: null,
    })
  })

  test('a long reply is cut', () => {
    expect(decideOutcome(claimed(), refused(550, 'x'.repeat(60_000)), facts).output).toHaveLength(4000)
    const attemptResult = resultOfFailure(
      failure({ stage: 'tls', kind: 'tls', message: `the peer refused STARTTLS: ${'x'.repeat(60_000)}` }),
    )
    expect(decideOutcome(claimed(), attemptResult, facts).details.length).toBeLessThan(1000)
  })
})

describe('the sentence of an attempt', () => {
  const sentence = (attemptResult: AttemptResult, wanted: Partial<AttemptContext> = {}) =>
    decideOutcome(claimed(), attemptResult, { ...facts, ...wanted }).details

  test('names the code, the classification with spaces, and the place', () => {
    expect(sentence(unknownUser)).toBe('550 invalid recipient: Delivery to ada@example.org failed at 192.0.2.7:25 (mx.example.org)')
  })

  test('puts an IPv6 address in brackets', () => {
    expect(sentence(accepted, { remote: { ...remote, address: '2001:db8::7', port: 2525 } })).toBe(
      'Message for ada@example.org accepted by [2001:db8::7]:2525 (mx.example.org)',
    )
  })

  test('has no code without a reply, and no place when none was reached', () => {
    const attemptResult = resultOfFailure(failure({}))
    expect(sentence(attemptResult)).toBe(
      'connection error: Delivery to ada@example.org failed at 192.0.2.7:25 (mx.example.org): the connection was refused',
    )
    expect(sentence(attemptResult, { remote: noRemote })).toBe(
      'connection error: Delivery to ada@example.org failed: the connection was refused',
    )
  })
})
