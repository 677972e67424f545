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
  output: Type.String({ description: "The remote's reply; empty when there was none" }),
  code: Type.Optional(Type.Integer({ description: 'SMTP reply code' })),
  sentWithSsl: Type.Boolean(),
  classification: nullable(Type.String()),
  classificationCode: nullable(Type.Integer()),
  smtpEnhancedCode: nullable(Type.String({ pattern: '^[245]\\.\\d{1,3}\\.\\d{1,3}$' })),
  remoteHost: nullable(Type.String()),
  tls: Type.Optional(
    Type.Object(
      {
        version: nullable(Type.String({ description: 'Null: it was not encrypted' })),
        cipher: nullable(Type.String()),
        certificate: nullable(Type.String({ description: '`valid`, or what is wrong with it' })),
        policy: Type.String({ description: '`dane`, `mta-sts`, `mta-sts testing`, `required` or `opportunistic`' }),
        mtaStsTestingFailure: nullable(Type.String({ description: 'What an MTA-STS policy in testing would not have let pass' })),
      },
      { description: 'The encryption of the connection; absent when none was made' },
    ),
  ),
  sourceAddress: Type.Optional(Type.String({ description: 'Our address it was sent from, where sources are set up' })),
  outcomeUnknown: Type.Optional(Type.Boolean({ description: 'Only when it is not known whether the remote took the message' })),
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
    ...(attempt.outcomeUnknown ? { outcomeUnknown: true } : {}),
  }
}
