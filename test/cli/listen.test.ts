/** `postrider listen`: the events that a developer sees and the requests that their receiver gets. */
import { createHmac, createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { jwksOf } from '../support/jwks.ts'
import { onDatabaseOf, runHere } from '../support/run-command.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

let service: Service
let everything: ReturnType<typeof listen>
beforeAll(async () => {
  service = await startService({ rateLimit: null, roles: ['delivery', 'housekeeping'] })
  everything = listen('--json')
  await until(() => expect(everything.printed).toHaveLength(1))
})
afterAll(async () => {
  await everything.end()
  await service.stop()
})

/** Runs the command in this process, with the service's own database. */
function listen(...words: string[]) {
  const printed: string[] = []
  let stop = () => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const exit = runHere(['listen', ...words], {
    ...onDatabaseOf(service),
    untilSignal: () => stopped,
    print: (text) => printed.push(text),
  })
  const end = () => {
    stop()
    return exit
  }
  return { printed, exit, end }
}

/** Resolves when the email's events are readable, so that a later listener does not receive them. */
const send = async (to: string, { raw, ...more }: { raw?: string; [field: string]: unknown } = {}) => {
  const envelope = { from: 'shop@simulator.test', to: [`${to}@simulator.test`] }
  const message = `From: ${envelope.from}\r\n${raw}\r\n\r\nx\r\n`
  const { body } = raw
    ? await service.call('POST', '/emails/raw', {
        key: service.testKey,
        body: { ...envelope, rawMessage: Buffer.from(message).toString('base64') },
      })
    : await service.call('POST', '/emails', { key: service.testKey, body: { ...envelope, subject: `to ${to}`, text: 'x', ...more } })
  const { id } = body.data as { id: string }
  await until(() => expect(everything.printed.join('\n')).toContain(id))
  return id
}
const until = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 20 })

describe('postrider listen', () => {
  test('prints a line for each event from then on, and ends on a signal', async () => {
    await send('delivered+before')
    const { printed, end } = listen()
    await until(() => expect(printed).toEqual(['listening']))
    const emailId = await send('delivered', { raw: 'Subject: =?utf-8?Q?Hello_=1B[31mred?=' })
    await until(() => expect(printed).toHaveLength(2))
    expect(printed[1]).toMatch(
      new RegExp(
        `^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z MessageSent ${emailId} to delivered@simulator\\.test "Hello  ?\\[31mred": Message for .* accepted`,
      ),
    )
    expect(printed[1]).not.toContain('\u001b')
    expect(await end()).toBe(0)
  })

  test('prints only the requested events, of one tenant and of some kinds', async () => {
    const other = await service.makeTenant('Other')
    await service.addDomain(other, 'other.example')
    const ofTenant = listen('--tenant', other, '--json')
    const ofFailures = listen('--events', 'MessageDeliveryFailed', '--json')
    await until(() => expect([ofTenant.printed, ofFailures.printed]).toEqual([['{"listening":true}'], ['{"listening":true}']]))
    await send('delivered')
    await send('delivered', { from: 'a@other.example', tenantId: other })
    const failed = await send('hardfail')
    await until(() => expect([ofTenant.printed.length, ofFailures.printed.length]).toEqual([2, 2]))
    expect(JSON.parse(ofTenant.printed[1] ?? '')).toMatchObject({ event: 'MessageSent', tenant_id: other })
    expect(JSON.parse(ofFailures.printed[1] ?? '')).toMatchObject({ payload: { message: { token: failed } } })
    expect([await ofTenant.end(), await ofFailures.end()]).toEqual([0, 0])
  })

  test('prints changes of suppression lists only when they are named', async () => {
    const named = listen('--events', 'SuppressionAdded,SuppressionRemoved')
    const usual = listen()
    await until(() => expect([named.printed, usual.printed]).toEqual([['listening'], ['listening']]))
    await service.call('POST', '/suppressions', { key: service.liveKey, body: { address: 'listed@one.test', reason: 'asked' } })
    await service.call('DELETE', '/suppressions/listed@one.test', { key: service.liveKey })
    await send('delivered')
    await until(() => expect([named.printed.length, usual.printed.length]).toEqual([3, 2]))
    expect(named.printed[1]).toMatch(/Z SuppressionAdded listed@one\.test: asked$/)
    expect(named.printed[2]).toMatch(/Z SuppressionRemoved listed@one\.test: asked$/)
    expect(usual.printed[1]).toContain(' MessageSent ')
    expect([await named.end(), await usual.end()]).toEqual([0, 0])
  })

  test('forwards as a webhook would be sent, and prints the answer', async () => {
    await using receiver = await startReceiver()
    receiver.answer = (response) => {
      response.statusCode = receiver.received.length === 1 ? 200 : 503
      response.end()
    }
    const { printed, end } = listen('--forward', `${receiver.url}/hook?a=1`)
    await until(() => expect(printed).toHaveLength(1))
    const secret = /whsec_[A-Za-z0-9+/]{43}=$/.exec(printed[0] ?? '')?.[0] ?? ''
    await send('delivered', { metadata: { order: '1' } })
    await until(() => expect(printed).toHaveLength(3))
    await send('delivered')
    await until(() => expect(printed).toHaveLength(5))
    expect(await end()).toBe(0)
    expect([printed[2], printed[4]]).toEqual([
      expect.stringMatching(/^ {2}-> 200 in \d+ ms$/),
      expect.stringMatching(/^ {2}-> 503 in \d+ ms$/),
    ])
    expect(receiver.received).toHaveLength(2)

    const { keys } = await jwksOf(service.port)
    for (const { method, path, headers, body } of receiver.received) {
      expect([method, path]).toEqual(['POST', '/hook?a=1'])
      expect(headers).toMatchObject({ 'user-agent': 'Postrider/test', 'x-webhook-event': 'MessageSent', 'x-webhook-attempt': '1' })
      const told = JSON.parse(body.toString()) as { uuid: string }
      expect(headers['webhook-id']).toBe(told.uuid)
      const hmac = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      hmac.update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`).update(body)
      expect(headers['webhook-signature']).toBe(`v1,${hmac.digest('base64')}`)
      const jwk = keys.find(({ kid }) => kid === headers['x-webhook-signature-kid'])
      const key = createPublicKey({ key: jwk as unknown as JsonWebKey, format: 'jwk' })
      expect(verify('RSA-SHA256', body, key, Buffer.from(String(headers['x-webhook-signature']), 'base64'))).toBe(true)
    }
  })

  test('goes on when no server answers at the URL', async () => {
    const { printed, end } = listen('--forward', 'http://127.0.0.1:9/', '--json')
    await until(() => expect(printed).toHaveLength(1))
    expect(JSON.parse(printed[0] ?? '')).toMatchObject({
      listening: true,
      forward: 'http://127.0.0.1:9/',
      secret: expect.stringMatching(/^whsec_/),
    })
    for (const name of ['delivered+1', 'delivered+2']) await send(name)
    await until(() => expect(printed).toHaveLength(3))
    for (const line of printed.slice(1))
      expect(JSON.parse(line)).toMatchObject({
        event: 'MessageSent',
        forwarded: { statusCode: null, error: expect.stringContaining('ECONNREFUSED') },
      })
    expect(await end()).toBe(0)
  })

  test.each([[['--forward', 'localhost:3000']], [['--events', 'MessageSent,Nonsense']], [['--tenant', 'nobody']], [['more']]])(
    'refuses %j',
    async (words) => {
      const { exit, printed } = listen(...words)
      expect(await exit).toBe(2)
      expect(printed).toEqual([])
    },
  )
})
