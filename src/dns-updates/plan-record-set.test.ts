import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type FoundRecord, planSet, type RecordSet } from './plan-record-set.ts'
import { wantedRecords } from './wanted-records.ts'

const set = (type: RecordSet['type'], ...wanted: string[]): RecordSet => ({ name: 'x.host.example', type, wanted })
const found = (type: FoundRecord['type'], ...texts: string[]): FoundRecord[] => texts.map((text) => ({ type, text }))

describe('the plan of a record set', () => {
  const texts = fc.uniqueArray(fc.constantFrom('v=spf1 a ~all', 'v=spf1 mx ~all', 'v=DKIM1; p=A', 'note', 'other'), { maxLength: 4 })

  test('never removes a record that Postrider did not write, and ends with the wanted ones or a conflict', () => {
    fc.assert(
      fc.property(texts, texts, texts, (wanted, written, present) => {
        const plan = planSet(set('TXT', ...wanted), written, found('TXT', ...present))
        if (plan.kind === 'conflict') {
          expect(wanted.length).toBeGreaterThan(0)
          return
        }
        const removed = plan.kind === 'change' ? plan.remove.map(({ text }) => text) : []
        const added = plan.kind === 'change' ? plan.add : []
        for (const text of removed) expect(written).toContain(text)
        const after = [...present.filter((text) => !removed.includes(text)), ...added]
        for (const text of wanted) expect(after).toContain(text)
        for (const text of written.filter((one) => !wanted.includes(one))) expect(after).not.toContain(text)
        for (const text of present.filter((one) => !written.includes(one))) expect(after).toContain(text)
      }),
    )
  })

  test('makes the change only if DNS still is as it was read', () => {
    expect(planSet(set('CNAME', 'host.example'), [], [])).toMatchObject({ prerequisites: [{ kind: 'absent', type: 'any' }] })
    expect(planSet(set('MX', '10 host.example'), [], [])).toMatchObject({
      prerequisites: [
        { kind: 'absent', type: 'MX' },
        { kind: 'absent', type: 'CNAME' },
      ],
    })
    const data = Buffer.from('\x04note')
    expect(planSet(set('TXT', 'v=spf1 -all'), [], [{ type: 'TXT', text: 'note', data }])).toMatchObject({
      add: ['v=spf1 -all'],
      prerequisites: [{ kind: 'exactly', type: 'TXT', data: [data] }],
    })
  })

  test('is a conflict with a second policy of the same kind, another host or an alias', () => {
    for (const [type, wanted, present] of [
      ['TXT', 'v=spf1 a ~all', found('TXT', 'v=SPF1 -all')],
      ['MX', '10 host.example', found('MX', '5 other.example')],
      ['A', '203.0.113.1', found('A', '203.0.113.2')],
      ['TXT', 'v=DKIM1; p=A', found('CNAME', 'other.example')],
      ['CNAME', 'host.example', found('CNAME', 'other.example')],
    ] as const)
      expect(planSet(set(type, wanted), [], present), `${type} ${wanted}`).toMatchObject({ kind: 'conflict' })
  })
})

describe('the wanted records', () => {
  const one = (type: 'A' | 'TXT' | 'PTR' | 'CNAME', name: string, value: string, status: 'OK' | 'Missing' | null) => ({
    type,
    name,
    value,
    status,
    found: [],
  })
  const spf = one('TXT', 'spf.host.example', 'v=spf1 ip4:203.0.113.9 ~all', 'Missing')
  const wanted = (records: Parameters<typeof wantedRecords>[0], own = false) =>
    wantedRecords(records, [], { hostname: 'host.example', own: () => own })

  test('are neither those that serve already, nor addresses of the host, nor PTR records', () => {
    const host = one('A', 'host.example', '203.0.113.9', 'OK')
    const rest = [
      one('PTR', '9.113.0.203.in-addr.arpa', 'host.example', 'Missing'),
      one('CNAME', 'track.host.example', 'host.example', 'OK'),
    ]
    expect(wanted([host, spf, ...rest]).sets).toEqual([{ name: 'spf.host.example', type: 'TXT', wanted: [spf.value] }])
    expect(wanted([host, spf, ...rest], true).sets.map(({ name }) => name)).toEqual(['spf.host.example', 'track.host.example'])
  })

  test('leave the list of addresses unchanged while those of the host are not known', () => {
    expect(wanted([one('A', 'host.example', '203.0.113.9', null), spf])).toEqual({
      sets: [],
      unknown: [{ name: 'spf.host.example', type: 'TXT' }],
    })
    expect(wanted([one('A', 'host.example', '<the public IPv4 address of this server>', 'Missing'), spf]).sets).toEqual([])
  })
})
