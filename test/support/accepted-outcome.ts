/** What an attempt came to that the first server accepted, as delivery tells its recorder; `claimed` is the test's. */
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
  outcomeUnknown: false,
  conversation: null,
  holdReason: null,
  suppress: null,
  unsuppress: false,
}
