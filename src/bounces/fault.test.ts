/**
 * The party at fault: only clear words about the recipient's mailbox cause a suppression. The texts are synthetic; test/corpus has real
 * ones.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classify, readReport, suppresses } from './bounces.ts'

const name = (text: string, code = 550, enhanced: string | null = null) => classify({ code, enhanced, text }).classification
const suppressed = (text: string, code = 550, enhanced: string | null = null) => suppresses(name(text, code, enhanced))

/** Texts that Postfix restrictions and policy servers put after their frame. */
const restrictions = fc.constantFrom(
  'Access denied',
  'Relay access denied',
  'Media error',
  'Mailer error',
  'Internal system error',
  'Policy rejection',
  'Server configuration problem',
  'Improper use of SMTP command pipelining',
  'Blocked using zen.spamhaus.org',
  'Your IP is on our list',
  'Please see https://policy.example/unknown-user',
  'SPF check failed',
  'HELO mx.shop.example does not exist',
  'Client host does not exist',
  'Sender domain not found',
  'Reverse DNS validation failed',
  'Message too big for system',
  'Rate limit exceeded',
  'Greylisted, try again',
  'Wubba lubba',
  'Quarantined by rule 17',
  'Mailbox full',
)
const addresses = fc.constantFrom('ann@example.org', 'no-such-user@example.org', 'unknown@mailbox.example')
const policyCodes = fc.constantFrom('5.7.1', '5.7.0', '5.3.0', '5.6.0', '5.5.2', null)

describe('behind "Recipient address rejected:"', () => {
  test('a restriction that is not about the mailbox suppresses no recipient', () => {
    const frames = fc.constantFrom('Recipient address rejected:', 'Recipient rejected:', 'RCPT TO rejected:', 'Recipient refused:')
    fc.assert(
      fc.property(frames, restrictions, addresses, policyCodes, (frame, why, address, enhanced) => {
        expect(suppressed(`554 ${enhanced ?? ''} <${address}>: ${frame} ${why} (in reply to RCPT TO command)`, 554, enhanced)).toBe(false)
      }),
    )
  })

  test('unknown words suppress no recipient', () => {
    const words = fc.stringMatching(/^[b-df-hj-np-tv-z]{4,9}( [b-df-hj-np-tv-z]{4,9}){0,5}$/)
    fc.assert(
      fc.property(words, (why) => {
        expect(suppressed(`554 5.7.1 <a@b.example>: Recipient address rejected: ${why}`)).toBe(false)
        expect(suppressed(`554 <a@b.example>: Recipient address rejected: ${why}`)).toBe(false)
      }),
    )
  })

  test('words for an unknown user still suppress', () => {
    for (const why of ['User unknown in virtual mailbox table', 'undeliverable address: unknown user: "ann"', 'no such user'])
      expect(name(`550 5.1.1 <a@b.example>: Recipient address rejected: ${why}`)).toBe('invalid_recipient')
    expect(name('550 5.4.1 Recipient address rejected: Access denied. AS(201806281)')).toBe('invalid_recipient')
  })
})

describe('the sending side is never the recipient', () => {
  const wordings = fc.constantFrom('No such domain shop.example', 'shop.example does not exist', 'user unknown', 'mailbox disabled', 'x')

  test('X.1.7 and X.1.8 suppress no recipient, with any words', () => {
    fc.assert(
      fc.property(wordings, fc.constantFrom('7', '8'), (words, last) => {
        expect(suppressed(`550 5.1.${last} ${words}`, 550, `5.1.${last}`)).toBe(false)
        expect(suppressed(`550 5.1.${last} ${words}`)).toBe(false)
      }),
    )
  })

  test('an answer to EHLO or MAIL FROM suppresses no recipient, in a report as well', () => {
    const commands = fc.constantFrom('EHLO', 'HELO', 'MAIL FROM')
    fc.assert(
      fc.property(wordings, commands, (words, command) => {
        const reply = `550 5.1.1 ${words}`
        expect(suppressed(`host mx.example said: ${reply} (in reply to ${command} command)`)).toBe(false)
        const exim = `  ann@example.org\n    SMTP error from remote mail server after ${command}:<us@shop.example>:\n    host mx.example [192.0.2.1]: ${reply}\n`
        const sendmail = `   ----- Transcript of session follows -----\n>>> ${command}:<us@shop.example>\n<<< ${reply}\n`
        for (const text of [exim, sendmail]) {
          const report = readReport(Buffer.from(`From: MAILER-DAEMON@mx.example\nSubject: Mail delivery failed\n\nfailed:\n\n${text}`))
          expect(report.kind).toBe('bounce')
          expect(suppresses(report.classification ?? 'unclassified'), text).toBe(false)
        }
      }),
    )
  })

  test('words about HELO, an IP address or the sender suppress no recipient', () => {
    for (const text of [
      'sender ip address rejected',
      'Sender email address rejected',
      'Helo command rejected: host not found',
      'client address rejected',
      'does not exist',
      'Invalid domain name',
      'No such domain',
      'backscatter protection detected an invalid or expired email address',
      'recipient not accepted. (BATV: no tag)',
      'this server does not accept mail from dynamic hosts',
      'we do not accept messages containing attachments',
      'TLS 1.0 is no longer supported',
      'each of the following recipients was rejected',
    ])
      expect(suppressed(`550 ${text}`), text).toBe(false)
  })
})

describe('a reply in a reply', () => {
  const frames = fc.constantFrom(
    (reply: string) => `host mx.example[192.0.2.1] said: ${reply} (in reply to RCPT TO command)`,
    (reply: string) => `host mx.example [192.0.2.1]: ${reply}`,
    (reply: string) =>
      `Google tried to deliver your message, but it was rejected by the recipient domain. The error that the other server returned was: ${reply}`,
    (reply: string) => `550 5.1.351 Remote server returned unknown recipient or mailbox unavailable -> ${reply}`,
    (reply: string) => `5.1.0 - Unknown address error ${reply.replace(' ', "-'")}'`,
    (reply: string) => `550 5.1.1 <a@b.example>: Recipient address rejected: undeliverable address: host mx.example said: ${reply}`,
    (reply: string) => `Your message could not be delivered, the mailbox may not exist. Remote host said: ${reply}`,
  )
  const replies = fc.constantFrom(
    '550 5.7.1 Access denied',
    '550 5.1.1 User unknown',
    '550 5.2.2 Mailbox full',
    '554 5.7.1 Blocked using zen.spamhaus.org',
    '550 5.3.0 Wubba lubba',
    '550 5.7.26 Unauthenticated email',
    '552 5.3.4 Message too big',
    '550 5.2.1 Account disabled',
    '554 5.6.0 Virus detected',
  )

  test('means the same as alone: the frame around it changes nothing', () => {
    fc.assert(
      fc.property(frames, replies, (frame, reply) => {
        expect([frame(reply), name(frame(reply))]).toEqual([frame(reply), name(reply)])
      }),
    )
  })
})

test('a program behind an address that fails is the trouble of its server', () => {
  for (const text of [
    'Command died with status 1: "/usr/bin/procmail". Command output: procmail: no such user',
    'pipe to |/home/ann/bin/catch generated by ann@example.org: no such file',
    'unknown mailer error 255',
    'procmail: Could not create "/var/spool/mail/ann"',
    'child returned 127',
  ]) {
    const { fault, classification } = classify({ code: 554, enhanced: '5.3.0', text: `554 5.3.0 ${text}` })
    expect([text, fault, suppresses(classification)]).toEqual([text, 'server', false])
  }
})

test('short words of a provider have the meaning of that provider', () => {
  for (const [text, meant] of [
    ['542 ann@example.org Rejected', 'invalid_recipient'],
    ['550 No such ID', 'invalid_recipient'],
    ['550 <ann> is now disabled with MTA service.', 'no_mailbox'],
    ['550 5.2.1 DisabledUser', 'no_mailbox'],
    ['521 5.3.2 <ann@example.org>: Recipient address rejected: System not accepting network messages', 'not_accepting_mail'],
    ['521 IP is on the block list', 'spam_block'],
    ['550 Sender <us@shop.example> has no A, AAAA, or MX DNS records. mx.example l=19 S=2', 'policy_violation'],
    ['550 DmarcRejection', 'policy_violation'],
    ['554 Blocklisting in effect', 'spam_block'],
    ['553 5.0.3 Blocked by ivmSIP', 'spam_block'],
    ['550 ReceivingRatePerm', 'temporarily_unavailable'],
    ['554 MailLoop', 'protocol_error'],
    ['550 Mailing to remote domains not supported', 'policy_violation'],
    ['554 5.7.1 Message Rejected Class=size limit=15728640 Subclass=reject size=18571048', 'message_too_large'],
    ['450 4.4.3 Unable to contact LDAP server', 'temporarily_unavailable'],
  ] as const)
    expect([text, name(text, Number(text.slice(0, 3)))]).toEqual([text, meant])
})
