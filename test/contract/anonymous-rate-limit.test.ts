/** The rate limit as shown to requests without a usable key (contract 6.1): the limit in force, not the one at the start. */
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { organisationLimitScope, setLimits } from '#limits'
import { type Service, startService } from '../support/in-process-service.ts'

/** A request that the parser refuses; the server answers before any route runs. */
const broken = (service: Service) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect(service.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n'))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })

test('limits set is shown to requests without a usable key as well', async () => {
  await using service = await startService({ rateLimit: 10 })
  const shown = async (asked: { key?: string }) => (await service.call('GET', '/emails', asked)).headers.get('x-ratelimit-limit')
  expect(await shown({})).toBe('10')
  await setLimits(service.db, organisationLimitScope, { ratePerSecond: 37 })
  await expect.poll(() => shown({ key: service.testKey })).toBe('37')
  expect(await shown({})).toBe('37')
  expect(await shown({ key: 'svc_test_00000000000000000000000000000000' })).toBe('37')
  expect(await shown({ key: 'nonsense' })).toBe('37')
  expect(await broken(service)).toMatch(/x-ratelimit-limit: 37\r\n/i)
})

test('a stranger who has used up the limit in force still gets 401, with nothing remaining', async () => {
  await using service = await startService({ rateLimit: 10 })
  await setLimits(service.db, organisationLimitScope, { ratePerSecond: 3 })
  await expect.poll(async () => (await service.call('GET', '/emails', {})).headers.get('x-ratelimit-limit')).toBe('3')
  const answers = await Promise.all(Array.from({ length: 8 }, () => service.call('GET', '/emails', {})))
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(401))
  expect(answers.some(({ headers }) => headers.get('x-ratelimit-remaining') === '0')).toBe(true)
})
