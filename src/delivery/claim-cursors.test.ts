import { describe, expect, test } from 'vitest'
import { openCursors } from './claim-cursors.ts'

const lanes = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => ({ tenantId: 't', recipientDomain: `d${String(from + n).padStart(4, '0')}.example` }))

describe('the place where a claim goes on', () => {
  test('a tenant with few destinations at work begins at its first one', () => {
    const cursors = openCursors(8)
    cursors.advance(lanes(0, 3), lanes(0, 3))
    expect(cursors.current.size).toBe(0)
  })

  test('a tenant with many goes on behind the emails of its last claim', () => {
    const cursors = openCursors(8)
    cursors.advance(lanes(4, 6), lanes(0, 20))
    expect(cursors.current.get('t')).toBe('d0005.example')
  })

  test('destinations that take nothing are passed over until the ones behind them are reached, and then it begins again', () => {
    const cursors = openCursors(8)
    const hanging = lanes(0, 20)
    const places: (string | undefined)[] = []
    for (let round = 0; round < 5; round++) {
      cursors.advance([], hanging)
      places.push(cursors.current.get('t'))
    }
    expect(places).toEqual(['d0005.example', 'd0011.example', 'd0017.example', undefined, 'd0005.example'])
  })
})
