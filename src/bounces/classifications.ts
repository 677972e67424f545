/** The classifications of contract section 7.2 and their codes. */

export const classifications = {
  invalid_recipient: 10,
  no_mailbox: 11,
  not_accepting_mail: 12,
  mailbox_full: 20,
  message_too_large: 21,
  spam_block: 30,
  policy_violation: 31,
  tls_required: 32,
  connection_error: 40,
  dns_error: 41,
  temporarily_unavailable: 42,
  protocol_error: 50,
  unclassified: 99,
} as const

export type ClassificationName = keyof typeof classifications
export const classificationNames = Object.keys(classifications) as ClassificationName[]

/**
 * The party that could correct the failure. `sender` is the sending domain, above all its DNS; `reputation` is the standing of Postrider's
 * address, or its rate; `server` is the receiving side, its fault or its own rule; `ours` is Postrider, its settings or its operator.
 */
export const faults = ['recipient', 'content', 'sender', 'reputation', 'server', 'ours'] as const
export type Fault = (typeof faults)[number]
