import { expect, test } from 'vitest'
import { signalOf } from './assign-transports.ts'
import { resultOfFailure, resultOfReply } from './attempt-outcome.ts'

const reply = (code: number, text: string, enhanced: string | null = null) => ({ code, enhanced, text: `${code} ${text}`, lines: [text] })
const failure = (kind: 'dropped' | 'tls' | 'timeout', stage: 'connect' | 'tls') => ({
  kind,
  stage,
  message: 'x',
  reply: null,
  transcript: '',
})

test.each([
  ['an unknown recipient, which the transport works to say', resultOfReply(reply(550, 'no such user', '5.1.1'), 'rcpt'), 'accepted'],
  ['a message called spam', resultOfReply(reply(554, 'message rejected as spam', '5.7.1'), 'data'), 'refused'],
  ['greylisting or an account under review', resultOfReply(reply(451, 'try again later', '4.7.1'), 'mail'), 'refused'],
  ['a full mailbox', resultOfReply(reply(452, 'mailbox full', '4.2.2'), 'rcpt'), undefined],
  ['no connection', resultOfFailure(failure('timeout', 'connect') as never), 'failed'],
  ['no TLS', resultOfFailure(failure('tls', 'tls') as never), 'failed'],
] as const)('%s reports the transport', (_, result, signal) => {
  expect(signalOf(result)).toBe(signal)
})
