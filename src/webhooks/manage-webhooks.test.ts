import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Refusal } from '#base'
import { subscription, webhookEvents } from './manage-webhooks.ts'

const someEvents = fc.array(fc.constantFrom(...webhookEvents), { maxLength: 12 })
const wanted = fc.record({ events: fc.option(someEvents), allEvents: fc.option(fc.boolean()) }, { requiredKeys: [] })

describe('a subscription', () => {
  test('is never empty, and names no event twice, after any sequence of requests', () => {
    fc.assert(
      fc.property(fc.array(wanted, { minLength: 1, maxLength: 6 }), (changes) => {
        let stored: ReturnType<typeof subscription> | undefined
        for (const change of changes) {
          try {
            stored = subscription(change, stored)
          } catch (error) {
            expect(error).toBeInstanceOf(Refusal)
            continue
          }
          expect(stored.allEvents || stored.events.length > 0).toBe(true)
          expect(new Set(stored.events).size).toBe(stored.events.length)
          if (change.allEvents != null) expect(stored.allEvents).toBe(change.allEvents)
          else if (change.events) expect(stored.allEvents).toBe(false)
        }
      }),
    )
  })

  test('is to all events when none are given at first', () => {
    for (const nothing of [{}, { events: null, allEvents: null }])
      expect(subscription(nothing, undefined)).toEqual({ events: [], allEvents: true })
  })
})
