/** Commands for the messages that routes received: list, show, and save as they arrived. */
import { writeFile } from 'node:fs/promises'
import type { ReceivedListItem, ReceivedRetrieveData } from '#client'
import { apiHelp, apiUsage, limitOf, maxListed, perRequest, plain, scopeOf, tenantApiOptions, usuallyListed, withApi } from './api.ts'
import { type Command, printed, text } from './command-definition.ts'

/** Such as "DMARC pass": only DMARC compares the results with the address in From. */
const dmarcOf = ({ authentication }: Pick<ReceivedListItem, 'authentication'>) =>
  authentication === null ? 'not checked' : `DMARC ${authentication.dmarc.result}`

const senderOf = ({ from, fromName }: Pick<ReceivedListItem, 'from' | 'fromName'>) =>
  from === '' ? 'no single sender' : fromName === '' ? plain(from) : `${plain(fromName)} <${plain(from)}>`

const addressesOf = ({ recipients }: Pick<ReceivedListItem, 'recipients'>) => plain(recipients.map(({ address }) => address).join(', '))

const line = (message: ReceivedListItem) =>
  `${message.id}  ${message.receivedAt.slice(0, 19)}Z  ${dmarcOf(message).padEnd(15)}  ${plain(message.from).padEnd(32)}  ${addressesOf(message).padEnd(32)}  ${plain(message.subject)}`

export const receivedList: Command = {
  name: 'received list',
  summary: 'list the messages that routes received, newest first',
  help: `postrider received list [--from ADDRESS] [--to ADDRESS] [--replies-to EMAIL] [--limit N] [--tenant ID] ${apiUsage}

Lists received messages of a tenant (default: the default tenant) with id, time, DMARC result, sender, recipients and subject.
--from        only those with this address in From or as envelope sender
--to          only those to this address
--replies-to  only those that answer the email with this id
--limit       number of messages (default: ${usuallyListed}; at most ${maxListed})
${apiHelp}

Example: postrider received list --limit 100`,
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    'replies-to': { type: 'string' },
    limit: { type: 'string' },
    ...tenantApiOptions,
  },
  run(given, deps) {
    const limit = limitOf(given)
    const [from, to, inReplyTo] = [text(given, 'from'), text(given, 'to'), text(given, 'replies-to')]
    const filter = { ...(from && { from }), ...(to && { to }), ...(inReplyTo && { inReplyTo }) }
    return withApi(given, deps, async (service) => {
      const messages = await scopeOf(service, given)
        .received.list({ ...filter, perPage: Math.min(limit, perRequest) })
        .take(limit)
      const next = 'no received messages. To receive mail: postrider route add help@mail.example.com'
      printed(given, deps, { messages }, messages.map(line).join('\n') || next)
    })
  },
}

/** Keeps line ends, for text of several lines. */
const plainLines = (words: string) => words.split(/\r?\n/).map(plain).join('\n').trimEnd()

function checksOf({ authentication }: ReceivedRetrieveData): string[] {
  if (authentication === null) return ['  checks    none: the message could not be read in time']
  const { spf, dkim, dmarc } = authentication
  return [
    `  DMARC     ${dmarc.result}  ${plain(dmarc.domain)}${dmarc.policy === null ? '' : `, policy ${plain(dmarc.policy)}`}`,
    `  SPF       ${spf.result}  ${plain(spf.domain)}`,
    ...dkim.map(({ result, domain, selector }) => `  DKIM      ${result}  ${plain(domain)}, selector ${plain(selector)}`),
  ]
}

function shownMessage(message: ReceivedRetrieveData): string {
  const { id, receivedAt, envelopeFrom, clientAddress, subject, autoSubmitted, inReplyTo, forwarded, attachments, text: words } = message
  return [
    `${id} received ${receivedAt} from ${clientAddress}`,
    `  from      ${senderOf(message)}`,
    `  envelope  ${envelopeFrom === '' ? 'null reverse-path' : plain(envelopeFrom)}`,
    `  to        ${addressesOf(message)}`,
    `  subject   ${plain(subject)}`,
    ...checksOf(message),
    ...(autoSubmitted === '' || autoSubmitted === 'no' ? [] : [`  automatic ${plain(autoSubmitted)}`]),
    ...(inReplyTo === null ? [] : [`  reply to  email ${inReplyTo}${message.inReplyToProven ? ', by its signed address' : ''}`]),
    ...forwarded.map(({ to, emailId }) => `  forwarded ${plain(to)}, email ${emailId}`),
    ...attachments.map(
      ({ filename, contentType, size }) => `  attached  ${plain(filename) || 'without a name'}, ${plain(contentType)}, ${size} octets`,
    ),
    '',
    words === null ? 'no text part' : plainLines(words),
    ...(message.truncated ? ['', 'Parts are cut or left out. The raw message has them: --save FILE'] : []),
  ].join('\n')
}

export const receivedShow: Command = {
  name: 'received show',
  summary: 'show a received message, its checks and its text',
  help: `postrider received show ID [--save FILE] [--tenant ID] ${apiUsage}

Prints a received message with the results of SPF, DKIM and DMARC, its copies, attachments and text; with --json also its headers and HTML.
All of it comes from a stranger: trust the sender only if DMARC is pass.
--save        also writes the message as it arrived to this new file
${apiHelp}

Example: postrider received show 0Wq7T4vZk2qXw9LbN1cYdE --save message.eml`,
  options: { save: { type: 'string' }, ...tenantApiOptions },
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [id = ''] = given.positionals
      const { received } = scopeOf(service, given)
      const message = await received.retrieve(id)
      const file = text(given, 'save')
      // An existing file stays, and only the user may read the new one.
      if (file !== undefined)
        await writeFile(file, Buffer.from((await received.retrieveRaw(id)).rawMessage, 'base64'), { flag: 'wx', mode: 0o600 })
      printed(given, deps, { ...message }, shownMessage(message))
    }),
}
