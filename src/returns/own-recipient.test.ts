import { describe, expect, test } from 'vitest'
import { ownFailure } from './own-recipient.ts'
import type { ReceivedReport, RecipientReport } from './report-summary.ts'

const one = (recipient: string | null, action = 'failed', status: string | null = null): RecipientReport => ({
  recipient,
  action,
  status,
  classification: null,
  classificationCode: null,
  fault: null,
  permanent: false,
  reason: null,
})

const report = (...recipients: RecipientReport[]): ReceivedReport => {
  const { action: _, ...first } = recipients[0] ?? one(null)
  return { kind: 'bounce', ...first, originalMessageId: null, recipients }
}

describe('the failed recipient of a report', () => {
  test.each<[string, string | null, boolean]>([
    ['ann@example.org', null, true],
    ['ann@example.org', 'ann@example.org', true],
    ['Ann@Example.org', 'ANN@EXAMPLE.ORG', true],
    ['ann@bücher.example', 'ann@xn--bcher-kva.example', true],
    ['ann@example.org', '"ann"@example.org', true],
    ['ann+shop@example.org', 'ann@example.org', true],
    ['ann@example.org', 'ann+inbox@example.org', true],
    ['ann@example.org', 'ann@mx1.example.org', true],
    ['ann@mail.example.org', 'ann@example.org', true],
    ['ann@example.org', 'list+ann=example.org@example.org', true],
    ['ann@example.org', 'SRS0=k3V9=TT=example.org=ann@forwarder.example', true],
    ['ann@example.org', 'bob@other.example', false],
    ['ann@example.org', 'ann@other.example', false],
    ['ann@example.org', 'ann@anexample.org', false],
    ['sales@example.org', 'bob@example.org', false],
    ['sales@example.org', 'bob.sales@example.org', false],
    ['ann@example.org', 'list+joann=example.org@example.org', false],
  ])('to %s that names %s: is the own one: %s', (recipient, named, isOwn) => {
    expect(ownFailure(report(one(named)), recipient)?.isOwn).toBe(isOwn)
    const { recipients: _, ...brief } = report(one(named))
    expect(ownFailure(brief, recipient)?.isOwn).toBe(isOwn)
  })

  test('is the own one among several, with its facts', () => {
    const several = report(one('bob@example.org', 'failed', '5.2.2'), one('ann@example.org', 'failed', '5.1.1'))
    expect(ownFailure(several, 'ann@example.org')).toMatchObject({ isOwn: true, report: { recipient: 'ann@example.org', status: '5.1.1' } })
  })

  test.each(['delivered', 'relayed', 'expanded', 'delayed'])('is none if the own one is %s', (action) => {
    expect(ownFailure(report(one('bob@example.org'), one('ann@example.org', action)), 'ann@example.org')).toBeUndefined()
    if (action !== 'delayed')
      expect(ownFailure(report(one('ann@example.org'), one('ann@example.org', action)), 'ann@example.org')).toBeUndefined()
  })
})
