/** Makes the submission of each personalization of a mail, one after the other, so that the caller can let other work take its turn. */
import type { Submission } from '#accept'
import { sendgridCategoryKey, sendgridRequestKey } from '#webhooks'
import type { SendGridMail, SendGridPersonalization } from './read-mail.ts'
import { Substituter, WorkBudget } from './substitutions.ts'

/** Of all messages of a request together, as much as the largest request. */
const maxCharacters = 64 * 1_048_576

/**
 * `requestId`: of a request with several personalizations, stored with each of its emails. Throws the refusal of a mail whose messages are
 * too large together.
 */
export function* personalize(mail: SendGridMail, requestId: string | undefined): Generator<Submission> {
  const budget = new WorkBudget(maxCharacters)
  const substituter = new Substituter(budget)
  const attached = mail.attachments.reduce((sum, one) => sum + one.content.length, 0)
  for (const one of mail.personalizations) {
    budget.take(attached)
    yield submissionOf(mail, one, { requestId, applied: substituter.of(one.substitutions) })
  }
}

interface Applying {
  requestId: string | undefined
  applied: (text: string) => string
}

function submissionOf(mail: SendGridMail, one: SendGridPersonalization, { requestId, applied }: Applying): Submission {
  const { html, text, categories } = mail
  return {
    from: one.from ?? mail.from,
    to: one.to,
    cc: one.cc,
    bcc: one.bcc,
    subject: applied(one.subject ?? mail.subject ?? ''),
    ...(html === undefined ? {} : { html: applied(html) }),
    ...(text === undefined ? {} : { text: applied(text) }),
    headers: mergedHeaders(mail.headers, one.headers),
    attachments: mail.attachments,
    tag: categories[0] ?? null,
    metadata: {
      ...Object.fromEntries(categories.slice(1).map((category, index) => [sendgridCategoryKey(index + 2), category])),
      ...mail.customArgs,
      ...one.customArgs,
      ...(requestId === undefined ? {} : { [sendgridRequestKey]: requestId }),
    },
    vendor: { replyTo: mail.replyTo.map(applied), bounce: false, tracking: mail.tracking, recipientsPerField: maxRecipientsPerField },
  }
}

const maxRecipientsPerField = 1000

/** Those of the personalization replace those of the mail with the same name. */
function mergedHeaders(common: Readonly<Record<string, string>>, own: Readonly<Record<string, string>>): Record<string, string> {
  const replaced = new Set(Object.keys(own).map((name) => name.toLowerCase()))
  return { ...Object.fromEntries(Object.entries(common).filter(([name]) => !replaced.has(name.toLowerCase()))), ...own }
}
