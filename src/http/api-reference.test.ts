import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { serveReference } from './api-reference.ts'

/** More than the buffers of the streams and of the sockets; the tests store it without compression. */
const scriptOctets = 16 * 1024 * 1024

/** Serves a script of this length. `openFiles` counts the descriptors of its file that this process has open. */
async function served() {
  const referenceFolder = mkdtempSync(join(tmpdir(), 'postrider-reference-'))
  onTestFinished(() => rmSync(referenceFolder, { recursive: true }))
  const packed = join(referenceFolder, 'scalar.js.gz')
  writeFileSync(packed, gzipSync(Buffer.alloc(scriptOctets, 'x'), { level: 0 }))
  const app = fastify()
  serveReference(app, { docsFolder: 'docs', referenceFolder })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const targetOf = (descriptor: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`)
    } catch {
      return ''
    }
  }
  return { url: `${url}/docs/js/scalar.js`, openFiles: () => readdirSync('/proc/self/fd').filter((one) => targetOf(one) === packed).length }
}

test.each(['identity', 'gzip'])('a client that leaves in the middle of the script leaves no open file: %s', async (encoding) => {
  const { url, openFiles } = await served()
  const left = () =>
    new Promise<void>((resolve, reject) => {
      const request = get(url, { headers: { 'accept-encoding': encoding } }, (response) => {
        response.once('data', () => {
          expect(openFiles()).toBe(1)
          request.destroy()
        })
        response.once('close', resolve).on('error', () => undefined)
      })
      request.on('error', reject)
    })
  await left()
  await expect.poll(openFiles).toBe(0)
})

test('the script is the same with and without compression on the wire', async () => {
  const { url, openFiles } = await served()
  const bodies = await Promise.all(
    ['identity', 'gzip'].map(async (encoding) => {
      const answer = await fetch(url, { headers: { 'accept-encoding': encoding } })
      return [answer.headers.get('content-encoding'), Buffer.from(await answer.arrayBuffer())] as const
    }),
  )
  expect(bodies.map(([encoding]) => encoding)).toEqual([null, 'gzip'])
  expect(bodies[0]?.[1].equals(bodies[1]?.[1] as Buffer)).toBe(true)
  await expect.poll(openFiles).toBe(0)
})
