/**
 * Free-text reports in many languages, and reports with a broken format.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readReport, suppresses } from './bounces.ts'

const read = (text: string) => readReport(Buffer.from(text))
const original = 'Message-ID: <1@shop.example>\nFrom: us@shop.example\nTo: ann@example.org\nSubject: x\n\nhi\n'
const told = (words: string, head = 'From: MAILER-DAEMON@mx.example\nSubject: Undelivered Mail Returned to Sender') =>
  read(
    `${head}\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n\n${words}\n--b\nContent-Type: message/rfc822\n\n${original}--b--\n`,
  )
const stated = (fields: string, words = 'It failed.') =>
  read(
    `From: MAILER-DAEMON@mx.example\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n\n${words}\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; ann@example.org\nAction: failed\n${fields}\n--b\nContent-Type: message/rfc822\n\n${original}--b--\n`,
  )
const isSuppressing = ({ permanent, classification }: { permanent: boolean; classification: string | null }) =>
  permanent && classification !== null && suppresses(classification as never)

describe('a message that expired in a queue', () => {
  const wordings = [
    'all hosts have been failing for a long time and were last tried after this message arrived',
    'Your message was not delivered within 0 days and 1 hours. Remote host is not responding.',
    'Your message was not delivered because the destination computer was not reachable within the allowed queue period.',
    'Delivery to the following recipients was aborted after 5.0 hour(s)',
    'Technical details of permanent failure: The recipient server did not accept our requests to connect. [mx.example. (0): Connection timed out]',
    'ann@example.org Error, ERROR_CODE :421, ERROR_CODE :, Host not reachable. This is a permanent error.',
    '550 5.4.300 Message expired -> 451 4.7.1 try again',
    '550 5.4.316 Message expired, connection refused',
    '554 5.4.7 exceeded max time without delivery',
    "I'm not going to try again; this message has been in the queue too long.",
    'Die Nachricht konnte 5 Tage lang nicht zugestellt werden. Die Zustellung wurde aufgegeben.',
    "Votre message n'a pas pu être remis pendant 3 jours. Délai dépassé.",
    'No se pudo entregar el mensaje después de 48 horas. El mensaje ha caducado.',
    'Não foi possível entregar a mensagem durante 4 dias. Tempo limite excedido.',
    'Il messaggio non è stato consegnato entro 2 giorni. Messaggio scaduto.',
    'Het bericht kon 5 dagen lang niet worden bezorgd. Het bericht is verlopen.',
    'Nie można dostarczyć wiadomości przez 5 dni. Wiadomość wygasła.',
    'Не удалось доставить сообщение в течение 3 суток. Истек срок доставки.',
    '5日間配信できませんでした。再送期間が終了しました。',
    '您的邮件在48小时内无法投递，投递超时。',
    'Zprávu se nepodařilo doručit během 5 dní. Platnost zprávy vypršela.',
    'Meddelandet kunde inte levereras på 5 dygn. Meddelandet har upphört att gälla.',
  ]

  test('is never permanent, in any wording', () => {
    for (const words of wordings) {
      const report = told(`Your message could not be delivered to:\n\nann@example.org\n${words}\n`)
      expect([words, report.kind, report.permanent]).toEqual([words, 'bounce', false])
    }
  })

  test('is never permanent, with any status and action above it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...wordings), fc.constantFrom('5.0.0', '5.4.7', '4.4.7', '5.4.0'), (words, status) => {
        expect(stated(`Status: ${status}\nDiagnostic-Code: smtp; ${words}`).permanent).toBe(false)
      }),
    )
  })
})

describe('the text around an unknown reply', () => {
  const around = [
    'The address may be wrong: user unknown, no such mailbox, account disabled.',
    'The recipient does not exist or the mailbox is full.',
    'Der Empfänger ist unbekannt, die Adresse existiert nicht.',
    'Please check the recipient address, it was not found.',
  ]
  test('never outweighs it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...around), fc.constantFrom('554 Wubba lubba', '550 5.3.0 Zork', '550 go away'), (words, reply) => {
        expect(isSuppressing(told(`${words}\n\nann@example.org\n    host mx.example said: ${reply}\n\n${words}\n`))).toBe(false)
        expect(isSuppressing(stated(`Status: 5.1.1\nDiagnostic-Code: smtp; ${reply}`, words))).toBe(false)
      }),
    )
  })

  test('a status above a reply with another meaning never outweighs it', () => {
    expect(isSuppressing(stated('Status: 5.1.1\nDiagnostic-Code: smtp; 550 Wubba lubba'))).toBe(false)
    expect(isSuppressing(stated('Status: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 x'))).toBe(true)
    expect(isSuppressing(stated('Status: 5.1.1'))).toBe(true)
  })
})

test('Google Groups means the same in every language', () => {
  const notices = [
    'the group you tried to contact (shop) may not exist, or you may not have permission to post messages to the group.',
    "Il se peut que le groupe que vous avez essayé de contacter (shop) n'existe pas ou que vous ne soyez pas autorisé à lui envoyer des messages.",
    'skupina, kterou se pokoušíte kontaktovat (shop), pravděpodobně neexistuje nebo nemáte oprávnění do ní přidávat příspěvky.',
    '您試圖聯絡的「shop」群組可能不存在，或者您沒有在此群組張貼留言的權限。',
    '連絡しようとしたグループ（shop）が存在しないか、グループにメッセージを投稿する権限がない可能性があります。',
    'el grupo con el que has intentado ponerte en contacto (shop) quizás no exista o bien no tienes los permisos necesarios.',
    'die Gruppe, die Sie kontaktieren wollten (shop), existiert möglicherweise nicht oder Sie sind nicht berechtigt, Nachrichten zu posten.',
  ]
  for (const notice of notices) {
    const report = told(
      `Hello us@shop.example,\n\n${notice}\n\nhttps://groups.google.com/support/\n\nGoogle Groups\n`,
      'From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>\nSubject: Delivery Status Notification (Failure)\nX-Failed-Recipients: ann@googlegroups.example',
    )
    expect([notice, report.classification, isSuppressing(report)]).toEqual([notice, 'policy_violation', false])
  }
})

test('a program behind an alias that failed is its server, not the recipient: X-Unix', () => {
  for (const diagnostic of ['X-Unix; 255', 'X-Unix; 67', 'x-unix; procmail: Could not create "/var/spool/mail/ann" id: ann: No such user'])
    for (const status of ['5.0.0', '5.1.1', '5.3.0']) {
      const report = stated(`Status: ${status}\nDiagnostic-Code: ${diagnostic}`, 'user unknown. Command output: no such user')
      expect([diagnostic, status, report.fault, isSuppressing(report)]).toEqual([diagnostic, status, 'server', false])
    }
})

test('a null MX is permanent, with any status above it', () => {
  const report = stated(
    "Status: 4.0.0\nDiagnostic-Code: smtp; The domain example.org doesn't receive email according to the administrator: returned Null MX",
  )
  expect(report).toMatchObject({ kind: 'bounce', classification: 'not_accepting_mail', permanent: true })
})

test('the fields of a report that has lost its boundary lines are read, and its words too', () => {
  const report = read(`From: MAILER-DAEMON@mx.example
Content-Type: multipart/report; report-type=delivery-status; boundary="lost"
Subject: Returned mail: User unknown

   ----- The following addresses had permanent fatal errors -----
<ann@example.org>

Reporting-MTA: dns; mx.example

Final-Recipient: RFC822; <ann@example.org>
Action: failed
Status: 5.1.1
Last-Attempt-Date: Thu, 29 Apr 2021 23:34:45 +0900

Return-Path: <us@shop.example>
${original}`)
  expect(report).toMatchObject({ kind: 'bounce', recipient: 'ann@example.org', status: '5.1.1', classification: 'invalid_recipient' })
})

test('a transcript with replies for now and for ever is a bounce, and each recipient has its own reply', () => {
  const report = read(`From: MAILER-DAEMON@mx.example
Subject: Returned mail: Deferred: Connection timed out with mx.example.org

   ----- Transcript of session follows -----
While talking to mx.example.org:
>>> RCPT To:<ann@example.org>
<<< 550 <ann@example.org>, User Unknown
550 <ann@example.org>... User unknown
421 mx.example.org (smtp)... Deferred: Connection timed out during user open with mx.example.org

   ----- Unsent message follows -----
Received: by mx.example; Fri, 30 Apr 2021 10:00:00 +0200
${original}`)
  expect(report).toMatchObject({ kind: 'bounce', recipient: 'ann@example.org', classification: 'invalid_recipient', permanent: true })
})

describe('the sender of a report', () => {
  test('a Japanese notice from no-reply with the sent message attached is a bounce', () => {
    const words =
      '送信先のメールボックスが一杯のため、送信できませんでした。\n\nCould not be delivered to: <ann@example.org>\nAs their mailbox is full.'
    const heads = [
      'From: no-reply@carrier.example\nSubject: メールエラー通知',
      'Return-Path: <>\nFrom: info@carrier.example\nSubject: お知らせ',
    ]
    for (const head of heads)
      expect(told(words, head)).toMatchObject({ kind: 'bounce', recipient: 'ann@example.org', classification: 'mailbox_full' })
  })

  test("a notice of a carrier's gateway with `Error: Invalid user address` is a bounce that suppresses", () => {
    const report = read(
      `From: post_master@carrier.example\nTo: us@shop.example\nSubject: Undeliverable Message\n\nError: Invalid user address\n\nOriginal Message:\nFrom: us@shop.example\nTo: 15550100@carrier.example\nSubject: x\nDate: Thu, 20 Jun 2024 10:29:52 +0000\n`,
    )
    expect(report).toMatchObject({ kind: 'bounce', recipient: '15550100@carrier.example', classification: 'invalid_recipient' })
    expect(isSuppressing(report)).toBe(true)
  })

  test('`Precedence: bulk` or `junk` alone makes no automatic answer', () => {
    for (const precedence of ['bulk', 'junk'])
      expect(
        read(
          `From: Ann <ann@example.org>\nSubject: Re: your offer\nIn-Reply-To: <1@shop.example>\nPrecedence: ${precedence}\n\nYes, I would like two of them.\n`,
        ).kind,
      ).toBe('other')
  })

  test('the sender is never taken for the recipient', () => {
    const report = read(
      `From: MAILER-DAEMON@mx.example\nTo: us@shop.example\nSubject: Mail delivery failed\n\nA message sent by\n\n  <us@shop.example>\n\ncould not be delivered. The mailbox does not exist.\n`,
    )
    expect(report.kind).toBe('bounce')
    expect(report.recipients.map((one) => one.recipient)).toEqual([null])
    const other = read(
      `From: MAILER-DAEMON@mx.example\nTo: bounce@rp.shop.example\nSubject: Mail delivery failed\n\nA message sent by\n\n  <us@shop.example>\n\ncould not be delivered to\n\n  <ann@example.org>\n\nThe mailbox does not exist.\n`,
    )
    expect(other.recipients.map((one) => one.recipient)).toEqual(['ann@example.org'])
  })
})

describe('the message that a report copies', () => {
  const copied = (boundary: string) =>
    `Return-Path: <list-bounces@shop.example>\nReceived: from a by b; Sun, 22 Nov 2026 04:00:00 +0000\nSubject: x\nFrom: list-owner@shop.example\nTo: ann@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="${boundary}"\nMessage-ID: <1@shop.example>\n\n--${boundary}\nContent-Type: text/plain\n\nYou are not allowed to post to this list. Contact list-owner@shop.example.\n\n--${boundary}\nContent-Type: message/rfc822\n\nFrom: bob@example.net\nTo: list@shop.example\nSubject: y\n\nhi\n\n--${boundary}--\n`

  test('is never read for its words, with any boundary that it declares', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9=_]{4,40}$/), (boundary) => {
        const report = read(
          `Return-Path: <>\nFrom: MAILER-DAEMON@mx.example\nTo: list-bounces@shop.example\nSubject: failure notice\n\nYour mail was not delivered:\n\n<ann@example.org>:\n192.0.2.1 does not like recipient.\nRemote host said: 550 User unknown\nGiving up on 192.0.2.1.\n\n--- Below this line is a copy of the message.\n\n${copied(boundary)}`,
        )
        expect([report.kind, report.recipient, report.classification]).toEqual(['bounce', 'ann@example.org', 'invalid_recipient'])
      }),
    )
  })

  test('is not read where the words above name a recipient, in any form', () => {
    for (const words of [
      'Invalid final delivery userid: ann@example.org',
      'to local user ann.\n(Originally addressed to ann@example.org)\n\nUser not known',
    ]) {
      const report = read(
        `Return-Path: <>\nFrom: postmaster@mx.example\nSubject: Undeliverable Mail\n\n${words}\n\nOriginal message follows.\n\n${copied('x1')}`,
      )
      expect([words, report.kind, report.recipient, report.classification]).toEqual([
        words,
        'bounce',
        'ann@example.org',
        'invalid_recipient',
      ])
    }
  })

  test('names no recipient where only its Cc is readable and that is the sender', () => {
    const report = read(
      'From: MAILER-DAEMON@mx.example\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n\nIt failed.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; ann@#example.org\nAction: failed\nStatus: 5.1.2\n--b\nContent-Type: message/rfc822\n\nMessage-ID: <1@shop.example>\nFrom: us@shop.example\nTo: ann@#example.org\nCc: us@shop.example\nSubject: x\n\nhi\n--b--\n',
    )
    expect([report.kind, report.recipient]).toEqual(['bounce', null])
  })
})

describe('the lines below a recipient', () => {
  const postfix = (lines: string) =>
    read(`From: MAILER-DAEMON@mx.example\nSubject: Undelivered Mail Returned to Sender\n\nI'm sorry.\n\n${lines}\n`)

  test('that go on with its reply name no other recipient', () => {
    const other = fc.constantFrom('ann2@example.org', 'fwd@example.net', 'x+y@sub.example.com')
    const reply = fc.constantFrom(
      '550\n    5.2.1 <OTHER>... Addressee unknown',
      '550 5.1.1\n    <OTHER>: Recipient address rejected: User unknown',
    )
    fc.assert(
      fc.property(other, reply, (address, said) => {
        const report = postfix(
          `<ann@example.org>: host mx.example.org[192.0.2.1] said: ${said.replace('OTHER', address)},\n    relay=[192.0.2.2] (in reply to RCPT TO command)`,
        )
        expect(report.recipients.map((one) => one.recipient)).toEqual(['ann@example.org'])
        expect(report.classification).toBe('invalid_recipient')
      }),
    )
  })

  test('give the reason that stands behind its colon in words of any kind', () => {
    for (const [why, name] of [
      ['No MX found for domain', 'dns_error'],
      ['Network error on destination MXs', 'connection_error'],
      ['Esta casilla ha expirado por falta de uso.', 'no_mailbox'],
      ['no valid MX hosts found', 'dns_error'],
    ] as const)
      expect([why, postfix(`Your message could not be delivered to:\n\nann@example.org: ${why}`).classification]).toEqual([why, name])
  })
})

test('a report without a statement of its own means the same as the report attached to it', () => {
  const inner =
    'From: MAILER-DAEMON@gate.example\nContent-Type: multipart/report; report-type=delivery-status; boundary=c\nSubject: Returned mail: User unknown\n\n--c\n\nIt failed.\n--c\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; gate.example\n\nFinal-Recipient: rfc822; ann@example.org\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown\n--c--\n'
  const outer = (words: string) =>
    read(
      `From: MAILER-DAEMON@mx.example\nSubject: Returned mail: User unknown\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n${words}\n--b\nContent-Type: message/rfc822\n\n${inner}--b--\n`,
    )
  const silent = outer('----- The following addresses had permanent delivery errors -----\n')
  expect([silent.kind, silent.recipient, silent.classification]).toEqual(['bounce', 'ann@example.org', 'invalid_recipient'])
  // An undeliverable report about a report concerns the recipient that refused the outer one.
  const double = outer('----- The following addresses had permanent delivery errors -----\n<us@shop.example>\n550 5.2.2 Mailbox full\n')
  expect([double.kind, double.recipient, double.classification]).toEqual(['bounce', 'us@shop.example', 'mailbox_full'])
})
