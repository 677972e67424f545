/** Tests the checker on small ledgers: no report for correct ones, and the right report for each broken guarantee. */
import { expect, test } from 'vitest'
import type { AcceptedMessage, ReportedAttempt, ReportedEmail, SendRequest } from './ledger.ts'
import { type Facts, noRunCounts, type RunCounts, reconcile } from './verify-run.ts'

const recipient = 'user-0-1@one.example'
const text = 'the hash of the text'

const asked = (change: Partial<SendRequest> = {}): SendRequest => ({
  path: '/emails',
  body: '',
  key: 'k',
  texts: new Map([[recipient, text]]),
  beganMs: 0,
  state: 'acknowledged',
  answeredMs: 1,
  emails: new Map([[recipient, 'e1']]),
  answer: '',
  ...change,
})
const copy = (id: string, atMs: number, change: Partial<AcceptedMessage> = {}): AcceptedMessage => ({
  id,
  recipient,
  messageId: '<1@x>',
  text,
  connection: 'c',
  atMs,
  ...change,
})
const sent = (id: string, atMs: number): ReportedAttempt => ({
  status: 'sent',
  output: `250 2.0.0 taken as ${id}`,
  outcomeUnknown: false,
  atMs,
})
const unknown = (atMs: number): ReportedAttempt => ({ status: 'softfail', output: '', outcomeUnknown: true, atMs })
const email = (change: Partial<ReportedEmail> = {}): ReportedEmail => ({
  id: 'e1',
  recipient,
  status: 'sent',
  events: ['MessageSent'],
  attempts: undefined,
  ...change,
})
const facts = (change: Partial<Facts> = {}): Facts => ({
  requests: [asked()],
  taken: new Map([[recipient, [copy('t1', 100)]]]),
  emails: new Map([[recipient, [email()]]]),
  faults: [],
  ...change,
})
const twice = (attempts: ReportedAttempt[], copies: AcceptedMessage[], change: Partial<Facts> = {}) =>
  facts({
    taken: new Map([[recipient, copies]]),
    emails: new Map([
      [recipient, [email({ attempts, events: attempts.map((one) => (one.status === 'sent' ? 'MessageSent' : 'MessageDelayed')) })]],
    ]),
    ...change,
  })
const counted = (given: Facts, expected: Partial<RunCounts>) =>
  expect(reconcile(given).counts).toEqual({ ...noRunCounts(), requests: 1, acknowledged: 1, ...expected })

test('an email that was accepted and arrived once is right', () => {
  counted(facts(), { deliveredOnce: 1 })
  expect(reconcile(facts()).violations).toEqual([])
})

test('an email that was accepted, did not arrive and is unknown is lost', () => {
  counted(facts({ taken: new Map(), emails: new Map() }), { lost: 1 })
})

test('an email that is `sent` and never arrived is lost', () => counted(facts({ taken: new Map() }), { lost: 1 }))

test('an email without a final status is stuck', () => {
  counted(facts({ taken: new Map(), emails: new Map([[recipient, [email({ status: 'softfail', events: [] })]]]) }), { stuck: 1 })
})

test('a second copy is explained by an attempt declared unknown while the first was on its way', () => {
  const fault = { kind: 'delivery', beganMs: 200, endedMs: 300 }
  const given = twice([unknown(900), sent('t2', 1500)], [copy('t1', 100), copy('t2', 1400)])
  counted(given, { duplicatesExplained: 1, duplicatesUnprovoked: 1 })
  counted({ ...given, faults: [fault] }, { duplicatesExplained: 1 })
})

test('a copy that was sent after its owner was declared lost has no explanation', () => {
  const given = twice([unknown(900), sent('t1', 1500)], [copy('t1', 1400), copy('t2', 1450)])
  counted(given, { duplicatesUnexplained: 1 })
})

test('one declaration explains one copy', () => {
  const given = twice([unknown(900), sent('t3', 1500)], [copy('t1', 100), copy('t2', 200), copy('t3', 1400)])
  counted(given, { duplicatesExplained: 1, duplicatesUnprovoked: 1, duplicatesUnexplained: 1 })
})

test('two recorded copies have no explanation', () => {
  const given = twice([sent('t1', 150), sent('t2', 250)], [copy('t1', 100), copy('t2', 200)])
  expect(reconcile(given).counts).toMatchObject({ duplicatesUnexplained: 1, eventsMissing: 1 })
})

test('an outcome recorded after it was declared unknown is stale', () => {
  const given = twice([unknown(900), sent('t1', 100)], [copy('t1', 100), copy('t2', 1400)])
  expect(reconcile(given).counts).toMatchObject({ stale: 1 })
})

test('two emails of one request, another text, and two Message-IDs are named', () => {
  expect(reconcile(facts({ emails: new Map([[recipient, [email(), email({ id: 'e2' })]]]) })).counts).toMatchObject({ invented: 1 })
  expect(reconcile(facts({ taken: new Map([[recipient, [copy('t1', 1, { text: 'other' })]]]) })).counts).toMatchObject({ altered: 1 })
  const copies = [copy('t1', 1), copy('t2', 2, { messageId: '<2@x>' })]
  expect(reconcile(facts({ taken: new Map([[recipient, copies]]) })).counts).toMatchObject({ altered: 1 })
})

test('an arrival that was never requested is invented; one requested without an answer is right both ways', () => {
  expect(reconcile(facts({ requests: [] })).counts).toMatchObject({ invented: 1 })
  const unanswered = asked({ state: 'unanswered', emails: new Map() })
  expect(reconcile(facts({ requests: [unanswered] }))).toEqual({ counts: { ...noRunCounts(), requests: 1, unanswered: 1 }, violations: [] })
  const nothing = { taken: new Map(), emails: new Map() }
  expect(reconcile(facts({ requests: [unanswered], ...nothing })).violations).toEqual([])
})

test('an email that the relay refuses fails and never arrives, also of a request whose answer was lost', () => {
  const refused = 'refused-0-1@one.example'
  for (const state of ['acknowledged', 'unanswered'] as const) {
    const request = asked({ state, texts: new Map([[refused, text]]), emails: new Map([[refused, 'e1']]) })
    const told = email({ recipient: refused, status: 'hardfail', events: ['MessageDeliveryFailed'] })
    const found = reconcile({ requests: [request], taken: new Map(), emails: new Map([[refused, [told]]]), faults: [] })
    expect(found.violations).toEqual([])
  }
})

test('an event that is missing or comes twice is named', () => {
  counted(facts({ emails: new Map([[recipient, [email({ events: [] })]]]) }), { deliveredOnce: 1, eventsMissing: 1 })
  const both = ['MessageSent', 'MessageSent']
  counted(facts({ emails: new Map([[recipient, [email({ events: both })]]]) }), { deliveredOnce: 1, eventsMissing: 1 })
})
