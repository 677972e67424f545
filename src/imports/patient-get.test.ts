import { expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import type { Get } from '#net'
import { patientGet } from './patient-get.ts'

/** The answers of a service, one after the other, the last again and again; and the waits between them. */
async function asked(...answers: { statusCode: number; retryAfter?: string }[]) {
  const waits: number[] = []
  const clock: Clock = { ...systemClock, after: (delayMs, action) => (waits.push(delayMs), systemClock.after(0, action)) }
  let requests = 0
  const get: Get = async () => {
    const answer = answers[Math.min(requests++, answers.length - 1)] as { statusCode: number; retryAfter?: string }
    return { contentType: null, body: '', isWhole: true, error: null, ...answer }
  }
  const { statusCode } = await patientGet(get, clock)({ url: 'https://api.example/', withinMs: 1000, maxOctets: 1000 })
  return { statusCode, waits }
}

test('a request that the service refuses for its rate is repeated after the wait it asks for', async () => {
  const refused = { statusCode: 429 }
  expect(await asked({ ...refused, retryAfter: '7' }, refused, { statusCode: 200 })).toEqual({ statusCode: 200, waits: [7000, 1000] })
  expect(await asked({ statusCode: 500 })).toEqual({ statusCode: 500, waits: [] })
})

test('the waits of a request are bounded', async () => {
  expect(await asked({ statusCode: 429, retryAfter: '50' })).toEqual({ statusCode: 429, waits: [50_000, 50_000] })
  expect(await asked({ statusCode: 429, retryAfter: '86400' })).toEqual({ statusCode: 429, waits: [] })
})
