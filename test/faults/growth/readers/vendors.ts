/** Input of the APIs of other vendors, except Postal's: bodies and parameters of their endpoints, as JSON. */
import { readMailgunMessage, readMailgunRaw } from '../../../../src/mailgun/read-message.ts'
import { parseMailgunTime } from '../../../../src/mailgun/read-options.ts'
import { readDomainsQuery, readEventsQuery, readSuppressionsQuery } from '../../../../src/mailgun/read-queries.ts'
import { mailgunSubmissions } from '../../../../src/mailgun/submissions.ts'
import { readNewEntries } from '../../../../src/mailgun/suppression-objects.ts'
import { readMailgunWebhook } from '../../../../src/mailgun/webhook-objects.ts'
import { readPostmarkBatch, readPostmarkEmail } from '../../../../src/postmark/read-message.ts'
import { readBounceQuery, readMessageQuery, readSuppressionQuery } from '../../../../src/postmark/read-queries.ts'
import { readSuppressionList } from '../../../../src/postmark/suppressions.ts'
import { readPostmarkWebhook } from '../../../../src/postmark/webhook-objects.ts'
import { readResendDomain } from '../../../../src/resend/domain-objects.ts'
import { readResendBatch, readResendEmail, readResendSchedule } from '../../../../src/resend/read-email.ts'
import {
  readIdempotencyKey,
  readResendPage,
  readSuppressedEmail,
  readSuppressedEmails,
  readSuppressionPage,
} from '../../../../src/resend/read-parameters.ts'
import { readResendWebhook } from '../../../../src/resend/webhook-objects.ts'
import { personalize } from '../../../../src/sendgrid/personalize.ts'
import { readSendGridMail } from '../../../../src/sendgrid/read-mail.ts'
import { readDeletion, readRecipientEmails, readSendGridPage } from '../../../../src/sendgrid/suppression-objects.ts'
import { readSendGridWebhook } from '../../../../src/sendgrid/webhook-objects.ts'
import { type Reader, reader } from '../reader.ts'

const maxBody = 262_144
const addresses = ['ann@a.example', 'b{i}@b.example, ', 'A <a@resend.dev>', '+b', '\\"Ann', '\\" <', '>', ',', ' ', 'é']
const json = ['"a{i}":"b",', '"a":', '[', ']', '{', '}', ',', '"', '\\u0000', '\\n', '255,']

const mailStart = '{"from":{"email":"a@b.example"},"subject":"aa",'
const usualPersonalization = '"personalizations":[{"to":[{"email":"a@b.example"}],"substitutions":{"a":"b","aaaaaaab":"c"}}]'
const usualContent = '"content":[{"type":"text/html","value":"aab"}]'
const mailgunStart = '{"from":"a@b.example","subject":"%recipient.a%",'
const mailFrame = (start: string, end: string): [string, string] => [
  `${mailStart}${usualContent},"personalizations":[{${start}`,
  `${end}}]}`,
]

export const vendorReaders: readonly Reader[] = [
  reader({
    name: 'email for Resend',
    longest: maxBody,
    reads: [
      'src/resend/read-email.ts readResendEmail',
      'src/resend/read-email.ts readResendBatch',
      'src/resend/read-email.ts readResendSchedule',
      'src/resend/domain-objects.ts readResendDomain',
      'src/resend/webhook-objects.ts readResendWebhook',
      'src/resend/read-parameters.ts readSuppressedEmail',
      'src/resend/read-parameters.ts readSuppressedEmails',
    ],
    words: ['src/vendors/json-fields.ts'],
    frames: [
      ['{"to":["', '"],"from":"a@b.example","subject":"a","text":"a"}'],
      ['{"to":"a@b.example","from":"a@b.example","subject":"a","text":"a","headers":{', '"z":"z"}}'],
      ['{"to":"a@b.example","from":"a@b.example","subject":"a","text":"a","tags":[{"name":"', '","value":"a"}]}'],
      ['{"to":"a@b.example","from":"a@b.example","subject":"a","text":"a","attachments":[{"filename":"', '","content":"YQ=="}]}'],
      ['{"to":"a@b.example","from":"a@b.example","subject":"a","text":"a","attachments":[{"content":[', '1]}]}'],
      ['[{"to":"a@b.example","from":"a@b.example","subject":"a",', '"text":"a"}]'],
      ['{"scheduled_at":"in ', '"}'],
      ['{"name":"', '"}'],
      ['{"email":"', '"}'],
      ['{"emails":["', '"]}'],
      ['{"endpoint":"a","events":["email.opened",', '"email.clicked"]}'],
    ],
    units: [...addresses, ...json],
    read: (octets) => {
      const body: unknown = JSON.parse(octets.toString())
      if (Array.isArray(body)) return readResendBatch(body, 'test')
      if (Object.hasOwn(body as object, 'scheduled_at')) return readResendSchedule(body)
      if (Object.hasOwn(body as object, 'email')) return readSuppressedEmail(body)
      if (Object.hasOwn(body as object, 'emails')) return readSuppressedEmails(body, true)
      if (Object.hasOwn(body as object, 'endpoint')) return readResendWebhook(body, true)
      return Object.hasOwn(body as object, 'name') ? readResendDomain(body) : readResendEmail(body, 'test')
    },
  }),
  reader({
    name: 'parameters for Resend',
    longest: 16_384,
    reads: [
      'src/resend/read-parameters.ts readResendPage',
      'src/resend/read-parameters.ts readSuppressionPage',
      'src/resend/read-parameters.ts readIdempotencyKey',
    ],
    units: ['limit', 'after', 'before', 'origin=bounce&', '=', '&', '1', 'a{i}', 'é'],
    read: (octets) => {
      const query = Object.fromEntries(new URLSearchParams(octets.toString()))
      return 'origin' in query ? readSuppressionPage(query) : [readIdempotencyKey(octets.toString()), readResendPage(query)]
    },
  }),
  reader({
    name: 'mail for SendGrid',
    longest: maxBody,
    reads: [
      'src/sendgrid/read-mail.ts readSendGridMail',
      'src/sendgrid/read-settings.ts readMailSettings',
      'src/sendgrid/read-settings.ts readTrackingSettings',
      'src/sendgrid/suppression-objects.ts readDeletion',
      'src/sendgrid/suppression-objects.ts readRecipientEmails',
      'src/sendgrid/webhook-objects.ts readSendGridWebhook',
    ],
    words: ['src/sendgrid/personalize.ts', 'src/sendgrid/substitutions.ts', 'src/vendors/json-fields.ts'],
    frames: [
      mailFrame('"to":[{"email":"a@b.example","name":"', '"}]'),
      mailFrame('"to":[{"email":"a@b.example"},', '{"email":"a@b.example"}]'),
      mailFrame('"to":[{"email":"a@b.example"}],"substitutions":{', '"aa":"b"}'),
      mailFrame('"to":[{"email":"a@b.example"}],"headers":{', '"z":"z"}'),
      [`${mailStart}${usualPersonalization},"content":[{"type":"text/html","value":"`, '"}]}'],
      [`${mailStart}${usualPersonalization},${usualContent},"categories":["`, '"]}'],
      [`${mailStart}${usualPersonalization},${usualContent},"attachments":[{"filename":"`, '","content":"YQ=="}]}'],
      [`${mailStart}${usualPersonalization},${usualContent},"tracking_settings":{`, '"open_tracking":{"enable":false}}}'],
      ['{"emails":["', '"]}'],
      ['{"recipient_emails":["', '"]}'],
      ['{"url":"a","bounce":true,', '"open":true}'],
    ],
    units: [...addresses, ...json, 'ab', 'aab', 'aaaaaaaa', '"},{"email":"c{i}@d.example'],
    read: (octets) => {
      const body: unknown = JSON.parse(octets.toString())
      if (Object.hasOwn(body as object, 'emails')) return readDeletion(body)
      if (Object.hasOwn(body as object, 'recipient_emails')) return readRecipientEmails(body)
      if (Object.hasOwn(body as object, 'url')) return readSendGridWebhook(body, undefined)
      return [...personalize(readSendGridMail(body), undefined)]
    },
  }),
  reader({
    name: 'parameters for SendGrid',
    longest: 16_384,
    reads: ['src/sendgrid/suppression-objects.ts readSendGridPage'],
    units: ['limit', 'offset', 'start_time=', '=', '&', '1', 'a{i}', 'é'],
    read: (octets) => readSendGridPage(Object.fromEntries(new URLSearchParams(octets.toString()))),
  }),
  reader({
    name: 'message for Postmark',
    longest: maxBody,
    reads: [
      'src/postmark/read-message.ts readPostmarkEmail',
      'src/postmark/read-message.ts readPostmarkBatch',
      'src/postmark/suppressions.ts readSuppressionList',
      'src/postmark/webhook-objects.ts readPostmarkWebhook',
    ],
    words: ['src/vendors/json-fields.ts', 'src/vendors/split-addresses.ts'],
    frames: [
      ['{"To":"', '","From":"a@b.example","TextBody":"a"}'],
      ['{"To":"a@b.example","From":"a@b.example","TextBody":"a","ReplyTo":"', '"}'],
      ['{"To":"a@b.example","From":"a@b.example","TextBody":"a","Metadata":{', '"z":"z"}}'],
      ['{"To":"a@b.example","From":"a@b.example","TextBody":"a","Headers":[{"Name":"', '","Value":"a"}]}'],
      ['{"To":"a@b.example","From":"a@b.example","TextBody":"a","Attachments":[{"ContentID":"', '","Name":"a","Content":"YQ=="}]}'],
      ['[{"To":"a@b.example","From":"a@b.example",', '"TextBody":"a"}]'],
      ['{"Suppressions":[{"EmailAddress":"', '"}]}'],
      ['{"Url":"a","Triggers":{"Bounce":{"Enabled":true},', '"Open":{}}}'],
    ],
    units: [...addresses, ...json, 'cid:'],
    read: (octets) => {
      const body: unknown = JSON.parse(octets.toString())
      if (Array.isArray(body)) return readPostmarkBatch(body)
      if (Object.hasOwn(body as object, 'Url')) return readPostmarkWebhook(body, undefined)
      return Object.hasOwn(body as object, 'Suppressions') ? readSuppressionList(body) : readPostmarkEmail(body)
    },
  }),
  reader({
    name: 'parameters for Postmark',
    longest: 16_384,
    reads: [
      'src/postmark/read-queries.ts readMessageQuery',
      'src/postmark/read-queries.ts readBounceQuery',
      'src/postmark/read-queries.ts readSuppressionQuery',
    ],
    frames: [
      ['', ''],
      ['count=1&subject=', ''],
      ['count=1&metadata_', '=a'],
    ],
    units: ['count=1&', 'metadata_a{i}=', 'subject=', 'fromdate=', '2026-11-23', 'T10:00', '=', '&', ' ', 'é'],
    read: (octets) => {
      const query = Object.fromEntries(new URLSearchParams(octets.toString()))
      const results = [readMessageQuery, readBounceQuery, readSuppressionQuery].map((read) => {
        try {
          return read(query)
        } catch {
          return undefined
        }
      })
      return results
    },
  }),
  reader({
    name: 'message for Mailgun',
    longest: maxBody,
    reads: [
      'src/mailgun/read-message.ts readMailgunMessage',
      'src/mailgun/read-message.ts readMailgunRaw',
      'src/mailgun/own-fields.ts readOwnFields',
      'src/mailgun/read-options.ts readOptions',
      'src/mailgun/read-options.ts parseMailgunTime',
      'src/mailgun/suppression-objects.ts readNewEntries',
      'src/mailgun/webhook-objects.ts readMailgunWebhook',
    ],
    words: ['src/vendors/json-fields.ts', 'src/mailgun/recipient-variables.ts', 'src/mailgun/submissions.ts'],
    frames: [
      [`${mailgunStart}"html":"%recipient.a%","to":["`, '"],"recipient-variables":{"a@b.example":{"a":"%recipient.a%"}}}'],
      [`${mailgunStart}"to":["a@b.example","b@b.example"],"recipient-variables":{},"html":"`, '"}'],
      [`${mailgunStart}"to":"a@b.example","html":"%recipient.a%","recipient-variables":{"a@b.example":{"a":"`, '"}}}'],
      [`${mailgunStart}"to":"a@b.example","html":"a","h:List-Unsubscribe":"`, '"}'],
      [`${mailgunStart}"to":"a@b.example","html":"a","o:deliverytime":"`, '"}'],
      [`${mailgunStart}"to":"a@b.example","html":"a","attachment":[{"filename":"a","content":"`, '"}]}'],
      [`${mailgunStart}"to":"a@b.example","inline":[{"filename":"a b","content":"YQ=="}],"html":"`, '"}'],
      [`${mailgunStart}"to":"a@b.example","html":"a",`, '"text":"a"}'],
      ['{"to":"a@b.example","message":"From: a@b.example\\n', '\\n\\na"}'],
      ['{"to":"a@b.example","message":"From: a@b.example\\nX-Mailgun-Variables: {', '}\\n\\na"}'],
      ['[{"address":"', '"}]'],
      ['{"id":"delivered","url":["', '"]}'],
    ],
    units: [
      ...addresses,
      ...json,
      '%recipient.a%',
      "'cid:a b",
      '%recipient',
      '%',
      '%tag_unsubscribe_email%',
      'h:a{i}',
      'v:a{i}',
      'X-Mailgun-Tag: a\\n',
      'Fri, 14 Oct 2011 23:10:10 -0000',
    ],
    read(octets) {
      const body: unknown = JSON.parse(octets.toString())
      if (Array.isArray(body)) return readNewEntries('bounces', body, 0)
      if (Object.hasOwn(body as object, 'id')) return readMailgunWebhook(body, true)
      if (Object.hasOwn(body as object, 'message')) return readMailgunRaw(body, 0)
      return [...mailgunSubmissions(readMailgunMessage(body, 0), 'request')]
    },
  }),
  reader({
    name: 'parameters for Mailgun',
    longest: 16_384,
    reads: [
      'src/mailgun/read-queries.ts readEventsQuery',
      'src/mailgun/read-queries.ts readSuppressionsQuery',
      'src/mailgun/read-queries.ts readDomainsQuery',
    ],
    frames: [
      ['', ''],
      ['event=delivered', ''],
      ['tags=a', ''],
      ['begin=', '&ascending=yes'],
    ],
    units: ['limit=1&', 'event=', 'tags=', ' OR ', ' AND ', '"', '(', ')', 'NOT ', 'a', '1', ',', ' ', '=', '&', 'é', '-0000', 'Jan'],
    read(octets) {
      const text = octets.toString()
      const query = Object.fromEntries(new URLSearchParams(text))
      const page = octets.toString('base64url')
      return [
        () => readEventsQuery(query, undefined),
        () => readEventsQuery({}, page),
        () => readSuppressionsQuery(query),
        () => readDomainsQuery(query),
        () => parseMailgunTime(text),
      ].map((read) => {
        try {
          return read()
        } catch {
          return undefined
        }
      })
    },
  }),
]
