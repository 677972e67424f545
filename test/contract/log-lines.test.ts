/** The service's own log: the facts in a request's line, and those left out. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startService } from '../support/in-process-service.ts'

test('the line of a request names the first emails that it made, and none when it made none', async () => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  await using service = await startService({ log, sendLimit: null })
  const send = async (count: number, idempotencyKey: string) => {
    const to = Array.from({ length: count }, (_, n) => `delivered+${n}@simulator.test`)
    const body = { from: 'hello@simulator.test', to, subject: 'Hello', text: 'Hello' }
    const { headers, body: answer } = await service.call('POST', '/emails', {
      key: service.testKey,
      body,
      headers: { 'idempotency-key': idempotencyKey },
    })
    const { messages } = answer.data as { messages: Record<string, { id: string }> }
    return { requestId: headers.get('x-request-id'), ids: Object.values(messages).map(({ id }) => id) }
  }
  const told = async (requestId: string | null) => {
    const line = () => lines.map((one) => JSON.parse(one) as Record<string, unknown>).find((one) => one.requestId === requestId)
    await expect.poll(line).toBeDefined()
    return line() ?? {}
  }

  const two = await send(2, 'two')
  expect(await told(two.requestId)).toMatchObject({ msg: 'answered', endpoint: 'emails.send', status: 200, emails: two.ids })
  const seven = await send(7, 'seven')
  expect((await told(seven.requestId)).emails).toEqual(seven.ids.slice(0, 5))
  expect(await told((await send(7, 'seven')).requestId)).not.toHaveProperty('emails')
  expect(lines.join('')).not.toContain('@')
})

test('requests without a key to unknown routes write no line, and those with a key do', async () => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  await using service = await startService({ log })
  const idOf = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(`http://127.0.0.1:${service.port}${path}`, { headers })).headers.get('x-request-id')
  const unlogged = [await idOf('/wp-login.php'), await idOf('/v1/nothing'), await idOf('/v1/nothing', { authorization: 'Bearer nonsense' })]
  // A known route keeps its line without a key: the operator looks for the refused key there.
  const logged = [await idOf('/v1/nothing', { authorization: `Bearer ${service.testKey}` }), await idOf('/v1/emails')]
  const loggedIds = () => lines.map((one) => (JSON.parse(one) as { requestId?: string }).requestId)
  await expect.poll(loggedIds).toEqual(expect.arrayContaining(logged))
  for (const id of unlogged) expect(loggedIds()).not.toContain(id)
})
