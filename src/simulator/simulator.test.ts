/** The documented addresses of the simulator (contract section 4.1). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isSimulatedSuppression, lateReport, simulate, simulatorDomain } from './simulator.ts'

const replyAt = (local: string, attempt = 1) => {
  const result = simulate({ recipient: `${local}@${simulatorDomain}`, attempt: attempt, elapsedMs: 0 })
  return result.kind === 'reply' ? result.reply : undefined
}

describe('the simulator', () => {
  test.each([
    ['hardfail', 550, '5.1.1'],
    ['mailbox-full', 552, '5.2.2'],
    ['spam-block', 550, '5.7.1'],
    ['delivered', 250, '2.0.0'],
    ['bounce', 250, '2.0.0'],
    ['complaint', 250, '2.0.0'],
    ['suppressed', 250, '2.0.0'],
    ['opened', 250, '2.0.0'],
    ['clicked', 250, '2.0.0'],
    ['constructor', 250, '2.0.0'],
  ])('%s is answered %i %s at every attempt', (local, code, enhanced) => {
    for (const attempt of [1, 2, 7]) expect(replyAt(local, attempt)).toMatchObject({ code, enhanced })
  })

  test('a softfail is deferred once, then delivered', () => {
    expect(replyAt('softfail', 1)).toMatchObject({ code: 451, enhanced: '4.3.2' })
    expect(replyAt('softfail', 2)).toMatchObject({ code: 250, enhanced: '2.0.0' })
  })

  test.each([
    ['bounce', ['bounce']],
    ['Complaint+order-1', ['complaint']],
    ['opened', ['open']],
    ['clicked', ['open', 'click']],
    ['delivered', []],
    ['bounces', []],
    ['constructor', []],
  ])('of %s, the events that follow are %j, and none follows for another domain', (local, kinds) => {
    expect(simulate({ recipient: `${local}@${simulatorDomain}`, attempt: 2, elapsedMs: 0 })).toMatchObject({
      kind: 'reply',
      followUps: kinds.map((kind) => ({ kind })),
    })
    expect(simulate({ recipient: `${local}@example.org`, attempt: 1, elapsedMs: 0 })).toMatchObject({ kind: 'reply', followUps: [] })
  })

  test('only suppressed@ is held as a suppressed recipient', () => {
    expect(isSimulatedSuppression('Suppressed+1@simulator.test')).toBe(true)
    for (const other of ['delivered@simulator.test', 'suppressed@example.org', 'x']) expect(isSimulatedSuppression(other)).toBe(false)
  })

  test.each(['bounce', 'complaint'] as const)('a late %s is a report with CRLF line ends and three parts, to the return path', (kind) => {
    const facts = { recipient: 'bounce@simulator.test', returnPath: 'b123@rp.house.test', messageId: '<id@simulator.test>', atMs: 0 }
    const text = lateReport(kind, facts).toString('latin1')
    expect(text).not.toMatch(/[^\r]\n|\r[^\n]/)
    expect(text).toMatch(/^From: .*\r\nTo: <b123@rp\.house\.test>\r\n/)
    expect(text.split('\r\n--report-0')).toHaveLength(5)
    expect(text).toContain(kind === 'bounce' ? '\r\nAction: failed\r\nStatus: 5.1.1\r\n' : '\r\nFeedback-Type: abuse\r\n')
  })

  test('a timeout never answers', () => {
    expect(simulate({ recipient: 'timeout@simulator.test', attempt: 3, elapsedMs: 0 }).kind).toBe('timeout')
  })

  test('the part behind a plus sign, and upper case, change nothing', () => {
    expect(replyAt('hardfail+order-4711+x')?.code).toBe(550)
    expect(replyAt('HardFail')?.code).toBe(550)
    expect(simulate({ recipient: 'hardfail@Simulator.TEST', attempt: 1, elapsedMs: 0 })).toMatchObject({ reply: { code: 550 } })
    expect(replyAt('not-hardfail')?.code).toBe(250)
  })

  test('other domains are always delivered to', () => {
    expect(simulate({ recipient: 'hardfail@example.com', attempt: 1, elapsedMs: 0 })).toMatchObject({ reply: { code: 250 } })
    expect(simulate({ recipient: 'hardfail@sub.simulator.test', attempt: 1, elapsedMs: 0 })).toMatchObject({ reply: { code: 250 } })
  })

  test('the reply text is the whole line, and the transcript shows question and answer', () => {
    const result = simulate({ recipient: 'spam-block@simulator.test', attempt: 1, elapsedMs: 0 })
    expect(result).toMatchObject({ reply: { text: expect.stringMatching(/^550 5\.7\.1 .*spam/) } })
    expect(result.transcript).toContain('C: RCPT TO:<spam-block@simulator.test>\nS: 550 5.7.1 ')
  })
})

describe('always', () => {
  test('any recipient and attempt give an answer, the same one each time', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), (local, attempt) => {
        const recipient = `${local}@${simulatorDomain}`
        expect(simulate({ recipient, attempt: attempt, elapsedMs: 0 })).toEqual(simulate({ recipient, attempt: attempt, elapsedMs: 0 }))
      }),
    )
  })
})
