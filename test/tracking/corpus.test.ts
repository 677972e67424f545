/** Every email of the corpus, tracked: an independent parser finds the same document, and every link leads to its original target. */
import { expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openTokens, trackHtml } from '#tracking'
import { corpus } from '../corpus/html/corpus.ts'
import { faultsOf } from '../support/parse-html.ts'

const ids = openIds(systemRandom)
const tokens = openTokens(openSecrets('a secret of tests', systemRandom))
const recipient = { tenantId: ids.tenantId(), emailId: ids.emailId(0) }
const origin = 'https://click.shop.example'
const excluded = ['own.example']
const pixel = /<img src="https:\/\/click\.shop\.example\/o\/[\w-]+" width="1" height="1" alt="" style="[^">]*">/g
const samples = corpus()

test('the corpus has more than 200 emails, all different', () => {
  expect(new Set(samples.map(({ html }) => html)).size).toBeGreaterThan(220)
  expect(Math.max(...samples.map(({ html }) => html.length))).toBeGreaterThanOrEqual(1_048_576)
})

const unlessNone = (name: string, faults: string[]) => (faults.length > 0 ? [{ name, faults }] : [])

test('with links tracked, only href values differ, and every link leads to its target', () => {
  const read = (token: string) => tokens.read(token, 'click')?.url
  const faulty = samples.flatMap(({ name, html }) => {
    const after = trackHtml(html, { origin, clicks: true, opens: false, excluded }, recipient, tokens)
    return unlessNone(name, faultsOf(html, after, { origin, excluded, read }))
  })
  expect(faulty).toEqual([])
})

test('with opens tracked, only one pixel is added', () => {
  const faulty = samples.flatMap(({ name, html }) => {
    const after = trackHtml(html, { origin, clicks: false, opens: true, excluded }, recipient, tokens)
    const pixels = after.match(pixel)?.length ?? 0
    return unlessNone(name, [
      ...(pixels === 1 ? [] : [`${pixels} pixels`]),
      ...(after.replace(pixel, '') === html ? [] : ['something else differs']),
    ])
  })
  expect(faulty).toEqual([])
})
