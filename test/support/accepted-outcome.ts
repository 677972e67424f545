/** The result of an attempt that the first server accepted, as delivery passes it to its recorder. `claimed` comes from the test. */
import { testTimeMs } from './database.ts'

export const accepted = {
  status: 'sent' as const,
  dueAtMs: null,
  atMs: testTimeMs,
  durationMs: 10,
  details: '',
  output: '250 OK',
  code: 250,
  enhanced: null,
  secure: true,
  tls: null,
  classification: null,
  classificationCode: null,
  remoteHost: 'mx.one.test',
  source: null,
  transport: null,
  outcomeUnknown: false,
  conversation: null,
  holdReason: null,
  suppress: null,
  unsuppress: false,
}
