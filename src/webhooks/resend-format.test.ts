import { expect, test } from 'vitest'
import { resendBody } from './resend-format.ts'

test('mail that is held for another reason than a suppression is delayed', () => {
  const typeOf = (details: string, holdReason?: string) => {
    const own = {
      event: 'MessageHeld',
      timestamp: 1.5,
      uuid: 'u',
      tenant_id: 't',
      payload: { message: { to: 'ann@one.example' }, details },
    }
    return JSON.parse(resendBody(Buffer.from(JSON.stringify(own)), 'id', { holdReason }).toString()) as { type: string; data: object }
  }
  for (const reason of ['tenant', 'domain', 'restored']) {
    const { type, data } = typeOf('the tenant is paused', reason)
    expect([type, Object.keys(data)]).toEqual(['email.delivery_delayed', expect.not.arrayContaining(['suppressed'])])
  }
  expect(typeOf('the tenant is paused').type).toBe('email.delivery_delayed')
  expect(typeOf('', 'suppressed')).toMatchObject({ type: 'email.suppressed', data: { suppressed: {} } })
  expect(typeOf('ann@one.example is on the suppression list')).toMatchObject({ type: 'email.suppressed' })
})
