/** The program's output: the secrets of the first start once, and no other secret afterwards. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort, startServiceProcess } from '../support/spawned-service.ts'

const keys = /svc_(live|test)_[0-9A-Za-z]{32}/g
const links = /\/sign-in\/\w{43}/g
const found = (text: string, form: RegExp) => new Set(text.match(form)).size

test('the first start prints two keys and a sign-in link once; from then on logs carry no keys, subjects or bodies', async () => {
  await using service = await startServiceProcess({
    POSTRIDER_LOG_LEVEL: 'debug',
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_RELAY: `smtp://127.0.0.1:${await freePort()}`,
  })
  const first = service.output()
  expect([found(first, keys), found(first, links)]).toEqual([2, 1])
  const [word, body] = ['unmistakable-subject', { from: 'a@simulator.test', to: ['delivered@simulator.test'], text: 'unmistakable-body' }]
  const sent = await service.call('POST', '/emails', { ...body, subject: word }, service.testKey)
  expect(sent.status).toBe(200)
  const { id } = sent.body.data as { id: string }
  const status = async () =>
    ((await service.call('GET', `/emails/${id}`, undefined, service.testKey)).body.data as { status: string }).status
  await expect.poll(status, { timeout: 20_000 }).toBe('sent')
  const refused = await service.call('POST', '/emails', { ...body, subject: word, to: ['no address'] }, service.testKey)
  expect(refused.status).toBe(400)
  await service.stop()
  await service.start()
  const later = service.output().slice(first.length)
  // The log contains the request, so there is a log to search.
  expect(later).toContain(id)
  for (const secret of ['unmistakable', service.testKey, service.liveKey]) expect(later).not.toContain(secret)
  expect([found(later, keys), found(later, links)]).toEqual([0, 0])
}, 120_000)

test('a quiet first start prints no key and no sign-in link', async () => {
  await using service = await startServiceProcess({ POSTRIDER_FIRST_START: 'quiet' })
  expect(existsSync(join(service.folder, 'secret'))).toBe(true)
  expect([found(service.output(), keys), found(service.output(), links)]).toEqual([0, 0])
}, 120_000)
