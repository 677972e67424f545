/** A relay that several tenants share: the failures of one must not divert the mail of another. */
import { expect, test } from 'vitest'
import { TransportHealths } from '../../src/delivery/assign-transports.ts'
import { maxRefusals, minDownMs } from '../../src/delivery/transports/transport-health.ts'

const relay = { name: 'old-vendor', revision: 1, createdAt: new Date(0) } as never

function make() {
  let nowMs = 0
  const lines: string[] = []
  const log = { info: (_: object, text: string) => lines.push(text), warn: (_: object, text: string) => lines.push(text) }
  const healths = new TransportHealths({ clock: { monotonicMs: () => nowMs } as never, log: log as never }, undefined)
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { healths, lines, pass }
}

const refuse = (healths: TransportHealths, tenantId: string, times: number) => {
  for (let n = 0; n < times; n++) healths.note(relay, 'refused', tenantId)
}

test('refused messages of one tenant divert only its own mail', () => {
  const { healths, lines } = make()
  refuse(healths, 'spammer', 5 * maxRefusals)
  expect(healths.mayUse(relay, 'spammer')).toBe(false)
  expect(healths.mayUse(relay, 'shop')).toBe(true)
  expect(lines).toEqual(['the transport is down; its mail takes another'])
})

test('deliveries of other tenants do not end the refusals of a tenant', () => {
  const { healths } = make()
  for (let n = 0; n < maxRefusals; n++) {
    healths.note(relay, 'refused', 'spammer')
    healths.note(relay, 'accepted', 'shop')
  }
  expect(healths.mayUse(relay, 'spammer')).toBe(false)
})

test('a failed connection diverts the mail of all tenants, and a refusal afterwards shows that the relay can be reached', () => {
  const { healths, pass } = make()
  healths.note(relay, 'failed', 'shop')
  expect(healths.mayUse(relay, 'other')).toBe(false)
  pass(minDownMs)
  expect(healths.mayUse(relay, 'other')).toBe(true)
  expect(healths.mayUse(relay, 'shop')).toBe(false)
  healths.note(relay, 'refused', 'other')
  expect(healths.mayUse(relay, 'shop')).toBe(true)
})

test('a relay that is added again under its name is healthy', () => {
  const { healths } = make()
  healths.note(relay, 'failed', 'shop')
  expect(healths.mayUse({ name: 'old-vendor', revision: 1, createdAt: new Date(1) } as never, 'shop')).toBe(true)
  expect(healths.mayUse(relay, 'shop')).toBe(false)
})

test('a tenant that may not use a relay does not take the one try that the others have', () => {
  const { healths, pass } = make()
  refuse(healths, 'spammer', maxRefusals)
  pass(minDownMs)
  expect(healths.mayUse(relay, 'spammer')).toBe(true)
  refuse(healths, 'spammer', 1)
  healths.note(relay, 'failed', 'shop')
  pass(minDownMs)
  expect(healths.mayUse(relay, 'spammer')).toBe(false)
  expect(healths.mayUse(relay, 'shop')).toBe(true)
})
