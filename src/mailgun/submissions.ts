/** Makes the submissions of a message, one after the other, so that the caller can let other work take its turn. */
import type { RawSubmission, Submission } from '#accept'
import { parseMailbox } from '#mail'
import { splitAddresses } from '#vendors'
import { mailgunMessageKey, mailgunTagKey } from '#webhooks'
import { MailgunRefusal } from './errors.ts'
import { type MailgunMessage, type MailgunRaw, maxMailgunRecipients } from './read-message.ts'
import { partsOfRecipient, type RecipientValues, RecipientVariables } from './recipient-variables.ts'

/** Acceptance refuses more. */
const maxReplyTo = 50

/** With recipient variables, each address in To gets a message of its own. */
export const messagesOf = ({ recipientVariables, to }: MailgunMessage): number => (recipientVariables ? to.length : 1)

/**
 * `messageId`: of a request for several messages, stored with each of its emails. Throws the refusal of messages that are too large
 * together, or have too many recipients.
 */
export function* mailgunSubmissions(message: MailgunMessage, messageId: string | undefined): Generator<Submission> {
  const { to, cc, bcc, recipientVariables } = message
  const variables = new RecipientVariables()
  if (!recipientVariables) {
    yield submissionOf(message, to, { messageId, applied: (text) => text })
    return
  }
  const copies = to.length * (cc.length + bcc.length)
  if (to.length + copies > maxMailgunRecipients)
    throw new MailgunRefusal(400, `with recipient-variables, cc and bcc get a copy of each message: ${copies} are too many`, 'cc')
  const attached = message.attachments.reduce((sum, one) => sum + one.content.length, 0)
  const seen = new Set<string>()
  for (const given of to) {
    const mailbox = parseMailbox(given)
    const address = mailbox?.address.text ?? given
    if (seen.has(address.toLowerCase())) continue
    seen.add(address.toLowerCase())
    const own = Object.entries(recipientVariables.get(address.toLowerCase()) ?? {}).map(([name, value]): [string, string] => [
      `.${name}`,
      value,
    ])
    const values: RecipientValues = new Map([...partsOfRecipient(given, address, mailbox?.name ?? ''), ...own])
    variables.take(attached)
    yield submissionOf(message, [given], { messageId, applied: (text) => variables.applied(text, values) })
  }
}

interface Applying {
  messageId: string | undefined
  applied: (text: string) => string
}

function submissionOf(message: MailgunMessage, to: string[], { messageId, applied }: Applying): Submission {
  const { html, text, headers } = message
  const appliedTo = (pairs: Readonly<Record<string, string>>) =>
    Object.entries(pairs).map(([name, value]): [string, string] => [name, applied(value)])
  const fields = appliedTo(headers)
  const isReplyTo = ([name]: [string, string]) => name.toLowerCase() === 'reply-to'
  return {
    from: message.from,
    to,
    cc: message.cc,
    bcc: message.bcc,
    subject: applied(message.subject),
    ...(html === undefined ? {} : { html: applied(html) }),
    ...(text === undefined ? {} : { text: applied(text) }),
    headers: Object.fromEntries(fields.filter((one) => !isReplyTo(one))),
    attachments: message.attachments,
    ...labelsOf(message, Object.fromEntries(appliedTo(message.variables)), messageId),
    scheduledAt: message.scheduledAt,
    vendor: {
      replyTo: fields.filter(isReplyTo).flatMap(([, value]) => splitAddresses(value, maxReplyTo)),
      bounce: false,
      tracking: message.tracking,
      recipientsPerField: maxMailgunRecipients,
    },
  }
}

/** The first tag is that of the email, the others are metadata beside the caller's variables. */
const labelsOf = ({ tags }: Pick<MailgunMessage, 'tags'>, variables: Readonly<Record<string, string>>, messageId: string | undefined) => ({
  tag: tags[0] ?? null,
  metadata: {
    ...variables,
    ...Object.fromEntries(tags.slice(1).map((tag, index) => [mailgunTagKey(index + 2), tag])),
    ...(messageId === undefined ? {} : { [mailgunMessageKey]: messageId }),
  },
})

export const mailgunRawSubmission = (raw: MailgunRaw): RawSubmission => ({
  from: raw.from,
  to: [...raw.to, ...raw.cc, ...raw.bcc],
  rawMessage: raw.rawMessage,
  ...labelsOf(raw, raw.variables, undefined),
  scheduledAt: raw.scheduledAt,
  vendor: { replyTo: [], bounce: false, tracking: raw.tracking, recipientsPerField: maxMailgunRecipients },
})
