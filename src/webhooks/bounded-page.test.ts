import { expect, test } from 'vitest'
import type { LoggedEvent } from '#events'
import { boundedPage } from './bounded-page.ts'

const event = (id: number, kind: LoggedEvent['kind'], tenantId = 'tnt_a') => ({ id, kind, tenantId }) as LoggedEvent
const idsOf = (events: readonly LoggedEvent[]) => events.map(({ id }) => id)

test('a page of usual events stays whole', () => {
  const page = Array.from({ length: 200 }, (_, id) => event(id, 'MessageSent'))
  expect(boundedPage(page)).toHaveLength(200)
})

test('a page ends with its eighth received message, so that the next page begins after it', () => {
  const page = Array.from({ length: 200 }, (_, id) => event(id, id % 2 === 0 ? 'MessageReceived' : 'MessageSent'))
  expect(idsOf(boundedPage(page))).toEqual(Array.from({ length: 15 }, (_, id) => id))
})

test('messages of other tenants do not count', () => {
  const page = Array.from({ length: 200 }, (_, id) => event(id, 'MessageReceived', id < 100 ? 'tnt_b' : 'tnt_a'))
  expect(boundedPage(page, ({ tenantId }) => tenantId === 'tnt_a')).toHaveLength(108)
})
