/** The emails of the corpus in a browser, tracked and not: a reader sees the same. Needs the Debian package `chromium`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openTokens, trackHtml } from '#tracking'
import { corpus } from '../corpus/html/corpus.ts'
import { type Chromium, startChromium } from '../support/chromium.ts'

const ids = openIds(systemRandom)
const tokens = openTokens(openSecrets('a secret of tests', systemRandom))
const recipient = { tenantId: ids.tenantId(), emailId: ids.emailId(0) }
const tracking = { origin: 'https://click.shop.example', clicks: true, opens: true, excluded: ['own.example'] }
const samples = corpus()

let chromium: Chromium
beforeAll(async () => {
  chromium = await startChromium()
})
afterAll(() => chromium[Symbol.asyncDispose]())

test('the pictures distinguish documents', async () => {
  const [red, blue] = [await chromium.picture('<p style="color:red">x'), await chromium.picture('<p style="color:blue">x')]
  expect(red.png.equals(blue.png)).toBe(false)
})

/** Only emails that differ three times count. */
async function looksSame(html: string, tracked: string, grows: number): Promise<boolean> {
  for (let tries = 0; tries < 3; tries++) {
    const before = await chromium.picture(html)
    const after = await chromium.picture(tracked, before.height)
    if (after.height - before.height <= grows && before.png.equals(after.png)) return true
  }
  return false
}

test.each([
  ['its links tracked', { ...tracking, opens: false }, 0],
  ['links and opens tracked, and is at most one pixel higher', tracking, 1],
])('every email looks the same with %s', { timeout: 200_000 }, async (_, how, grows) => {
  const differing: string[] = []
  for (const { name, html } of samples) if (!(await looksSame(html, trackHtml(html, how, recipient, tokens), grows))) differing.push(name)
  expect(differing).toEqual([])
})
