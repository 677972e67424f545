/**
 * Parses the machine-readable part of a DSN: message/delivery-status (RFC 3464, RFC 6533), also as plain text.
 */

import { type Part, readPartFields, textOf } from './mime-parts.ts'
import { typedAddress } from './report-addresses.ts'

export interface StatusOfRecipient {
  /** The original recipient address, if the report contains it, otherwise the final one. */
  recipient: string | null
  finalRecipient: string | null
  action: string | null
  status: string | null
  /** The remote server's reply, without its type. */
  diagnostic: string | null
  remoteMta: string | null
  /** The diagnosis came from a program behind the address: type X-Unix, or an exit status. */
  ofProgram: boolean
}

export interface DeliveryStatus {
  reportingMta: string | null
  arrivalDate: Date | null
  recipients: StatusOfRecipient[]
}

/** A message has no more recipients than this, and each has to be classified. */
const maxRecipients = 50
/** A longer value is not a date. */
const maxDateLength = 200

export const isDeliveryStatus = ({ media }: Part): boolean =>
  /^message\/(?:global-)?delivery-?status$/.test(media) || media === 'text/delivery-status'

/** Parses the fields; null if they contain neither a recipient nor a server. */
export function readDeliveryStatus(text: string): DeliveryStatus | null {
  const status: DeliveryStatus = { reportingMta: null, arrivalDate: null, recipients: [] }
  // Fields are read as octets, because some contain unencoded text in other languages.
  for (const group of groupsOf(Buffer.from(text).toString('latin1'))) {
    const field = (name: string) => group.find(([one]) => one === name)?.[1]?.trim() || undefined
    status.reportingMta ??= afterType(field('reporting-mta')) ?? null
    status.arrivalDate ??= dateOf(field('arrival-date'))
    if (recipientFields.some((name) => field(name) !== undefined) && status.recipients.length < maxRecipients)
      status.recipients.push(recipientOf(field))
  }
  return status.reportingMta === null && status.recipients.length === 0 ? null : status
}

const recipientFields = ['final-recipient', 'original-recipient', 'action', 'status', 'diagnostic-code']

function recipientOf(field: (name: string) => string | undefined): StatusOfRecipient {
  const finalRecipient = typedAddress(field('final-recipient'))
  return {
    recipient: typedAddress(field('original-recipient')) ?? finalRecipient ?? typedAddress(field('x-actual-recipient')),
    finalRecipient,
    action: /^[a-z]+/.exec(field('action')?.toLowerCase() ?? '')?.[0] ?? null,
    status: /(?:^|\D)([245]\.\d{1,3}\.\d{1,3})(?!\d)/.exec(field('status') ?? '')?.[1] ?? null,
    diagnostic: afterType(field('diagnostic-code')) ?? field('x-supplementary-info') ?? null,
    remoteMta: afterType(field('remote-mta')) ?? null,
    ofProgram: /^x-unix\b/i.test(field('diagnostic-code') ?? ''),
  }
}

/** `smtp; 550 …`, `dns; mx.example.org`, `X-Postfix; unknown user`. A reply without a type is returned unchanged. */
const afterType = (value: string | undefined) =>
  value
    ?.replace(/^(?:[A-Za-z][A-Za-z0-9-]{0,30})[ \t]*;/, '')
    .trim()
    .replace(/\s+/g, ' ') || undefined

export function dateOf(value: string | undefined): Date | null {
  const time =
    value === undefined
      ? Number.NaN
      : Date.parse(
          value
            .slice(0, maxDateLength)
            .replace(/\([^()]*\)/g, ' ')
            .trim(),
        )
  return Number.isNaN(time) ? null : new Date(time)
}

/**
 * Groups of fields between empty lines. Some programs omit the empty line: a recipient field that the group already has begins the next
 * group. Lines that are not fields are surrounding text.
 */
function groupsOf(text: string): [string, string][][] {
  const groups: [string, string][][] = []
  for (const block of text.split(/\n[ \t]*\n/)) {
    let group: [string, string][] = []
    for (const field of readPartFields(unindented(block.replace(/^[>|][ \t]?/gm, '')))) {
      if (field[0] === 'final-recipient' && group.some(([name]) => name === field[0])) {
        groups.push(group)
        group = []
      }
      group.push(field)
    }
    if (group.length > 0) groups.push(group)
  }
  return groups.length < 2 ? groups : joined(groups)
}

/** Removes the indent of a fully indented block; otherwise an indented line continues the previous one, for any content. */
const unindented = (block: string) =>
  /^\s*?\n?[ \t]{1,8}[A-Za-z-]{4,40}:/.test(block) ? block.replace(/^[ \t]{1,8}(?=[A-Za-z-]{4,40}:)/gm, '') : block

/** A diagnosis after an empty line belongs to the recipient before it. */
function joined(groups: [string, string][][]): [string, string][][] {
  const whole: [string, string][][] = []
  for (const group of groups) {
    const names = group.map(([name]) => name)
    const last = whole.at(-1)
    const isRest =
      !names.some((name) => /^(?:final|original)-recipient$/.test(name)) && /^(?:action|status|diagnostic-code)$/.test(names[0] ?? '')
    if (isRest && last && last.some(([name]) => name === 'final-recipient') && !last.some(([name]) => names.includes(name)))
      last.push(...group)
    else whole.push(group)
  }
  return whole
}

/** The fields of a report in a text part: the rest of a damaged report, or a forwarded one. */
export function statusInText(part: Part, text = textOf(part)): DeliveryStatus | null {
  const found = /^[>| \t]{0,8}(?:Final-Recipient|Original-Recipient|Reporting-MTA)[ \t]*:/im.exec(text)
  const status = found ? readDeliveryStatus(text.slice(found.index)) : null
  return status && status.recipients.length > 0 ? status : null
}
