/** The delivery object (contract 7.8). The wire's "delivery" is the code's "attempt"; no other name differs. */

import Type, { type Static } from 'typebox'
import { type ClassificationName, classification } from '#bounces'
import type { Attempt } from '#emails'
import { instantFields, instantOf, nullable } from './common-schemas.ts'

export const AttemptSchema = Type.Object({
  id: Type.String(),
  status: Type.Unsafe<Attempt['status']>({ type: 'string', enum: ['sent', 'softfail', 'hardfail', 'held', 'bounced'] }),
  ...instantFields,
  details: Type.String(),
  output: Type.String({ description: 'Reply of the remote MTA; empty without a reply' }),
  code: Type.Optional(Type.Integer({ description: 'SMTP reply code' })),
  sentWithSsl: Type.Boolean(),
  classification: nullable(Type.String()),
  classificationCode: nullable(Type.Integer()),
  smtpEnhancedCode: nullable(Type.String({ pattern: '^[245]\\.\\d{1,3}\\.\\d{1,3}$' })),
  remoteHost: nullable(Type.String()),
  tls: Type.Optional(
    Type.Object(
      {
        version: nullable(Type.String({ description: 'null: not encrypted' })),
        cipher: nullable(Type.String()),
        certificate: nullable(Type.String({ description: '`valid`, or the problem with the certificate' })),
        policy: Type.String({ description: '`dane`, `mta-sts`, `mta-sts testing`, `required` or `opportunistic`' }),
        mtaStsTestingFailure: nullable(
          Type.String({
            description: 'The failure that an MTA-STS policy in enforce mode would have caused; only for policies in testing mode',
          }),
        ),
      },
      { description: 'Encryption of the connection; absent without a connection' },
    ),
  ),
  sourceAddress: Type.Optional(
    Type.String({ description: 'Egress source: the local address of the connection, if sources are configured' }),
  ),
  transport: Type.Optional(
    Type.String({
      description: 'Name of the transport, if the installation has transport rules; `mx`: direct delivery, `relay`: POSTRIDER_RELAY',
    }),
  ),
  outcomeUnknown: Type.Optional(Type.Boolean({ description: 'Only if the remote MTA may or may not have accepted the message' })),
})

export function deliveryToWire(attempt: Attempt): Static<typeof AttemptSchema> {
  const { classification: name } = attempt
  return {
    id: String(attempt.id),
    status: attempt.status,
    ...instantOf(attempt.at),
    details: attempt.details,
    output: attempt.output,
    ...(attempt.code === null ? {} : { code: attempt.code }),
    sentWithSsl: attempt.secure,
    classification: name,
    classificationCode: name === null ? null : classification(name as ClassificationName),
    smtpEnhancedCode: attempt.enhanced,
    remoteHost: attempt.remoteHost,
    ...(attempt.tls === null ? {} : { tls: attempt.tls }),
    ...(attempt.source === null ? {} : { sourceAddress: attempt.source }),
    ...(attempt.transport === null ? {} : { transport: attempt.transport }),
    ...(attempt.outcomeUnknown ? { outcomeUnknown: true } : {}),
  }
}
