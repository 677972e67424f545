/** Requests that need memory wait while unread answers of their tenant have its half of the memory. */
import { connect, type Socket } from 'node:net'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { sql } from '#db'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
let emailId: string
let scheduledId: string
let cancelledId: string

beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
  // Read, they count as 37 MB: three of them fit into the half of one tenant.
  const attachments = [7, 2].map((mib) => ({
    filename: 'a',
    contentType: 'application/octet-stream',
    content: Buffer.alloc(mib * 1_048_576, mib).toString('base64'),
  }))
  const send = async (more: object) => {
    const body = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't', attachments, ...more }
    const answer = await service.call('POST', '/emails', { key: service.testKey, body })
    return (answer.body.data as { id: string }).id
  }
  emailId = await send({})
  scheduledId = await send({ scheduledAt: new Date(Date.now() + 3_600_000).toISOString() })
  cancelledId = await send({ scheduledAt: new Date(Date.now() + 3_600_000).toISOString() })
  expect((await service.call('POST', `/emails/${cancelledId}/cancel`, { key: service.testKey })).status).toBe(200)
  // Its id has the form of an email's.
  await service.db.run(
    sql`insert into received_messages (tenant_id, id, key, sender, recipients, client, size_octets, facts, raw, received_at)
     values ($1, $2, 'k', 'a@b.test', '[]', '127.0.0.1', 6000000, '{}', decode(repeat('61', 6000000), 'hex'), now())`,
    [service.tenantId, emailId],
  )
  return () => service.stop()
})

/** Resolves with the connections when each has the beginning of its answer. They read no further. */
async function unreadAnswers(count: number): Promise<Socket[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const client = connect(service.port, '127.0.0.1')
      client.write(
        `GET /v1/emails/${emailId}?expand=attachments,raw HTTP/1.1\r\nHost: house.test\r\nAuthorization: Bearer ${service.testKey}\r\n\r\n`,
      )
      await new Promise<void>((resolve, reject) => {
        client.once('error', reject)
        client.once('readable', resolve)
      })
      return client
    }),
  )
}

const requests: [string, () => Promise<{ status: number; text: string }>][] = [
  [
    'a new time for a scheduled message',
    () => {
      const body = { scheduledAt: new Date(Date.now() + 7_200_000).toISOString() }
      return service.call('PATCH', `/emails/${scheduledId}`, { key: service.testKey, body })
    },
  ],
  [
    'a received message as it arrived',
    async () => {
      const headers = { authorization: `Bearer ${service.testKey}` }
      const answer = await fetch(`http://127.0.0.1:${service.port}/v1/received/${emailId}/raw`, { headers })
      return { status: answer.status, text: await answer.text() }
    },
  ],
]

test.each(requests)(
  '%s',
  async (_, ask) => {
    const clients = await unreadAnswers(3)
    onTestFinished(() => {
      for (const client of clients) client.destroy()
    })
    let answer: Awaited<ReturnType<typeof ask>> | undefined
    const asked = ask().then((given) => (answer = given))
    for (let nth = 0; nth < 5; nth++) expect((await service.call('GET', '/domains', { key: service.testKey })).status).toBe(200)
    await service.wait(500)
    expect(answer).toBeUndefined()
    clients[0]?.destroy()
    expect((await asked).status).toBe(200)
  },
  60_000,
)

test('a message that cannot be rescheduled is refused at once', async () => {
  const clients = await unreadAnswers(3)
  onTestFinished(() => {
    for (const client of clients) client.destroy()
  })
  const body = { scheduledAt: new Date(Date.now() + 7_200_000).toISOString() }
  const { status, body: answer } = await service.call('PATCH', `/emails/${cancelledId}`, { key: service.testKey, body })
  expect([status, answer.error?.message]).toEqual([400, 'the email was cancelled'])
}, 60_000)
