/**
 * Claims that a report may and may not prove; test/bounces tests how well real reports are classified.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readReport } from './bounces.ts'

const read = (text: string) => readReport(Buffer.from(text))

const delivery = (
  groups: string,
  { human = 'It failed.', original = 'Message-ID: <1@shop.example>\nTo: ann@example.org\nX-Ours: yes\nSubject: x\n\nhi' } = {},
) =>
  `From: MAILER-DAEMON@mx.example
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

${human}
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example
Arrival-Date: Mon, 2 Mar 2026 10:00:00 +0100 (CET)

${groups}
--b
Content-Type: message/rfc822

${original}
--b--
`

const group = (recipient: string, action: string, status: string, diagnostic = '') =>
  `Final-Recipient: rfc822; ${recipient}\nAction: ${action}\nStatus: ${status}\n${diagnostic ? `Diagnostic-Code: smtp; ${diagnostic}\n` : ''}`

describe('a delivery report', () => {
  test('gives the facts that find the message: its id, its header, the reporting server and the date of arrival', () => {
    const report = read(delivery(group('ann@example.org', 'failed', '5.1.1', '550 5.1.1 unknown')))
    expect(report).toMatchObject({
      kind: 'bounce',
      recipient: 'ann@example.org',
      status: '5.1.1',
      classification: 'invalid_recipient',
      classificationCode: 10,
      fault: 'recipient',
      permanent: true,
      originalMessageId: '1@shop.example',
      reason: '550 5.1.1 unknown',
      reportingMta: 'mx.example',
      arrivalDate: new Date('2026-03-02T09:00:00Z'),
    })
    expect(report.original?.headers['x-ours']).toBe('yes')
    expect(report.original?.to).toEqual(['ann@example.org'])
  })

  test('lists all its recipients, those that failed first', () => {
    const report = read(
      delivery(
        [
          group('a@x.example', 'delivered', '2.0.0'),
          group('b@x.example', 'delayed', '4.4.1'),
          group('c@x.example', 'failed', '5.2.2'),
        ].join('\n'),
      ),
    )
    expect(report.kind).toBe('bounce')
    expect(report.recipient).toBe('c@x.example')
    expect(report.recipients.map(({ recipient, action, permanent }) => [recipient, action, permanent])).toEqual([
      ['c@x.example', 'failed', true],
      ['b@x.example', 'delayed', false],
      ['a@x.example', 'delivered', false],
    ])
  })

  test('of success is no bounce, with any words', () => {
    for (const action of ['delivered', 'relayed', 'expanded'])
      expect(read(delivery(group('a@x.example', action, '2.0.0'), { human: 'user unknown, failed permanently' })).kind).toBe('other')
  })

  test('of a message that expired is final but not permanent: a server that was away leads to no suppression', () => {
    const expired = [
      group('a@x.example', 'failed', '4.4.7'),
      group('a@x.example', 'failed', '5.0.0', '451 4.3.0 try again: retry timeout exceeded'),
      group('a@x.example', 'failed', '4.4.7', '550 4.4.7 QUEUE.Expired; message expired'),
      group('a@x.example', 'failed', '5.4.7', 'delivery expired (message too old)'),
    ]
    for (const one of expired) expect(read(delivery(one))).toMatchObject({ kind: 'bounce', permanent: false })
  })

  test('names the address that was written to, not the one it was forwarded to, when the report has both', () => {
    const both = `Original-Recipient: rfc822; ann@example.org\n${group('ann@backend.example', 'failed', '5.1.1')}`
    expect(read(delivery(both)).recipient).toBe('ann@example.org')
  })

  test('folds an indented line into the field before it, although it looks like a field', () => {
    const folded =
      'Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 address\n    rejected: User unknown\n'
    expect(read(delivery(folded)).reason).toBe('550 address rejected: User unknown')
  })

  test('that blocks the sending address suppresses no recipient, although it has the words user unknown', () => {
    const blocked = read(delivery(group('a@x.example', 'failed', '5.1.1', '550 5.1.1 user unknown, your host is listed at dnsbl.example')))
    expect(blocked.classification).toBe('spam_block')
  })

  test("is not misled by the original's own words", () => {
    const words =
      'Subject: x\nMessage-ID: <2@shop.example>\nTo: ann@example.org\n\nFinal-Recipient: rfc822; victim@x.example\nAction: failed\nStatus: 5.1.1\n'
    const report = read(delivery(group('ann@example.org', 'delayed', '4.4.1'), { original: words }))
    expect(report.recipients.map((one) => one.recipient)).toEqual(['ann@example.org'])
    expect(report.kind).toBe('delay')
  })
})

describe('a complaint', () => {
  const feedback = (type: string) => `From: fbl@isp.example
Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b
Content-Type: message/feedback-report

Feedback-Type: ${type}
Original-Rcpt-To: <ann@isp.example>
Arrival-Date: Mon, 2 Mar 2026 10:00:00 +0000

--b
Content-Type: message/rfc822

Message-ID: <1@shop.example>
To: ann@isp.example

hi
--b--
`
  test('has a type, a recipient and the message, and neither status nor classification', () => {
    expect(read(feedback('abuse'))).toMatchObject({
      kind: 'complaint',
      feedbackType: 'abuse',
      recipient: 'ann@isp.example',
      originalMessageId: '1@shop.example',
      status: null,
      classification: null,
      permanent: false,
    })
  })

  test('is a report of unwanted mail: `not spam` and failed authentication are not complaints', () => {
    for (const type of ['fraud', 'virus', 'opt-out', 'other', 'something-new']) expect(read(feedback(type)).kind).toBe('complaint')
    for (const type of ['not-spam', 'auth-failure']) expect(read(feedback(type))).toMatchObject({ kind: 'other', feedbackType: type })
  })
})

describe('fields of a report in a text', () => {
  const status = 'Final-Recipient: rfc822; bob@example.com\nAction: failed\nStatus: 5.1.1\n'
  const feedback = 'Feedback-Type: abuse\nOriginal-Rcpt-To: bob@example.com\n'
  const quoted = (lines: string) => lines.replace(/^(?=.)/gm, '> ')
  const answer = (header: string, body: string) => read(`${header}\nTo: b@rp.house.test\nSubject: Re: your report\n\nThank you.\n\n${body}`)
  const auto = 'From: support@desk.example\nAuto-Submitted: auto-replied'

  test.each<[string, string, string]>([
    ['an auto-response', auto, status],
    ['an auto-response that quotes them', auto, quoted(status)],
    ['an auto-response with the null reverse-path', `Return-Path: <>\n${auto}`, quoted(status)],
    ['an auto-response that quotes a whole report', auto, quoted(`From: MAILER-DAEMON@mx.example\nSubject: failure\n\n${status}`)],
    ['an auto-response that quotes a complaint', auto, quoted(feedback)],
    ['an auto-response that repeats a complaint', auto, feedback],
  ])('are not a report of %s', (_, header, body) => {
    expect(answer(header, body)).toMatchObject({ kind: 'auto-reply', permanent: false })
  })

  test('are not a report of a person', () => {
    for (const body of [status, quoted(status), feedback]) expect(answer('From: ann@desk.example', body).kind).toBe('other')
  })

  test('are a report of a mail system, and of a sender with the null reverse-path', () => {
    for (const header of ['From: MAILER-DAEMON@mx.example\nAuto-Submitted: auto-replied', 'Return-Path: <>\nFrom: mx@desk.example']) {
      expect(answer(header, status)).toMatchObject({ kind: 'bounce', recipient: 'bob@example.com', permanent: true })
      expect(answer(header, feedback)).toMatchObject({ kind: 'complaint', recipient: 'bob@example.com' })
    }
  })
})

describe('the envelope sender', () => {
  const returned = 'From: mx@mx.example\nSubject: Your message\n\n550 5.1.1 <bob@example.com>: no such user\n'
  const kindOf = (text: string, hasNullSender?: boolean) => readReport(Buffer.from(text), hasNullSender).kind

  test('of received mail is that of the transaction, whatever its Return-Path field says', () => {
    for (const field of ['', 'Return-Path: <>\n', 'Return-Path: <mx@mx.example>\n']) {
      expect(kindOf(field + returned, true)).toBe('bounce')
      expect(kindOf(field + returned, false)).toBe('other')
    }
  })

  test('of a saved message is that of its Return-Path field', () => {
    expect(kindOf(`Return-Path: <>\n${returned}`)).toBe('bounce')
    expect(kindOf(returned)).toBe('other')
  })
})

describe('anything at all', () => {
  test('is read without a crash, and gives a result that JSON can represent', () => {
    const words = fc.constantFrom(
      '\n',
      '\r\n',
      '--b',
      'Content-Type: multipart/report; boundary=b',
      'Content-Type: message/rfc822',
      'Final-Recipient: rfc822;',
      'Action: failed',
      'Status: 5.1.1',
      'From: MAILER-DAEMON',
      'Subject: failure',
      ' ',
      '550 ',
      '@',
      'a@b.example',
      '<',
      'Feedback-Type: abuse',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(words, fc.string()), { maxLength: 40 }), (pieces) => {
        const report = read(pieces.join(''))
        expect(JSON.parse(JSON.stringify(report)).kind).toBe(report.kind)
        expect(report.permanent && report.kind !== 'bounce').toBe(false)
      }),
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (octets) => {
        expect(['bounce', 'delay', 'complaint', 'auto-reply', 'other']).toContain(readReport(octets).kind)
      }),
    )
  })
})
