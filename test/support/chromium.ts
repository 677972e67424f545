/** Debian's Chromium without a window, controlled over a pipe (DevTools protocol): HTML in, pictures out, no network. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

export interface Picture {
  /** Height of the whole document, in pixels. */
  height: number
  png: Buffer
}

export interface Chromium extends AsyncDisposable {
  /** The first `height` pixels of the document, or all that it has up to `maxHeight`. */
  picture(html: string, height?: number): Promise<Picture>
}

interface Answer {
  id?: number
  /** Of an event. */
  method?: string
  result?: unknown
  error?: { message: string }
}

const width = 700
const maxHeight = 12_000

export async function startChromium(path = '/usr/bin/chromium'): Promise<Chromium> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-chromium-'))
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--host-resolver-rules=MAP * ~NOTFOUND']
  const child = spawn(path, [...flags, `--user-data-dir=${folder}`, '--remote-debugging-pipe', 'about:blank'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  })
  const [input, output] = [child.stdio[3] as Writable, child.stdio[4] as Readable]
  const asked = new Map<number, { resolve(result: never): void; reject(error: Error): void }>()
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  void ended.then(() => {
    for (const one of asked.values()) one.reject(new Error('chromium has ended'))
  })
  input.on('error', () => undefined)
  let loaded: () => void = () => undefined
  let rest = ''
  output.setEncoding('utf8').on('data', (piece: string) => {
    const messages = (rest + piece).split('\0')
    rest = messages.pop() ?? ''
    for (const text of messages) {
      const { id, method, result, error } = JSON.parse(text) as Answer
      if (method === 'Page.loadEventFired') loaded()
      const waiting = id === undefined ? undefined : asked.get(id)
      if (!waiting || id === undefined) continue
      asked.delete(id)
      if (error) waiting.reject(new Error(error.message))
      else waiting.resolve(result as never)
    }
  })
  let count = 0
  const ask = <Result>(method: string, params: object, sessionId?: string): Promise<Result> =>
    new Promise((resolve, reject) => {
      const id = ++count
      asked.set(id, { resolve, reject })
      input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    })

  const { targetId } = await ask<{ targetId: string }>('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await ask<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true })
  const tell = <Result>(method: string, params: object = {}) => ask<Result>(method, params, sessionId)
  await tell('Page.enable')
  await tell('Emulation.setScriptExecutionDisabled', { value: true })
  await tell('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false })
  const { frameTree } = await tell<{ frameTree: { frame: { id: string } } }>('Page.getFrameTree')

  return {
    async picture(html, wanted) {
      const load = new Promise<void>((resolve) => {
        loaded = resolve
      })
      await tell('Page.setDocumentContent', { frameId: frameTree.frame.id, html })
      // A large document is read in pieces, and a blocked resource fails later.
      await Promise.race([load, ended])
      const { cssContentSize } = await tell<{ cssContentSize: { height: number } }>('Page.getLayoutMetrics')
      const height = Math.ceil(cssContentSize.height)
      const clip = { x: 0, y: 0, width, height: Math.min(wanted ?? height, maxHeight), scale: 1 }
      const { data } = await tell<{ data: string }>('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true, clip })
      return { height, png: Buffer.from(data, 'base64') }
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
