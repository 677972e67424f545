/** Hostile templates in a child process with less heap than the product's: each ends with a message or a problem, and none ends the child. */
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { openTaskProcess, systemClock } from '#base'
import type { RenderResult, RenderTask } from './render-child.ts'

const bounds = { clock: systemClock, deadlineMs: 120_000, idleMs: 60_000, maxHeapMebibytes: 144 }
const child = openTaskProcess<RenderTask, RenderResult>(new URL('./render-child.ts', import.meta.url), bounds)
afterAll(() => child.stop())

const render = (source: { html?: string; text?: string }, variables: object | null) =>
  child.run('a', { source: { subject: 'x', ...source }, variables })

const long = 'a'.repeat(90_000)
const doubled = (times: number) => '{% assign a = v %}' + '{% assign a = a | concat: a %}'.repeat(times)
const ofLists = { v: [{ i: Array.from({ length: 10 }, () => 'a'.repeat(9000)) }] }
const ofMany = { v: [{ i: Array.from({ length: 9000 }, () => 'abcdefghijkl') }] }
const names = Array.from({ length: 300 }, (_, nth) => `n${nth}`)

const attacks: [string, object][] = [
  [`${doubled(13)}{{ a | map: "i" }}`, ofLists],
  [`${doubled(13)}{{ a | map: "i" | append: "x" | size }}`, ofLists],
  [`${doubled(13)}{{ a | map: "i" | upcase | size }}`, ofLists],
  [`${doubled(13)}{{ a | map: "i" | date: "%Y" }}`, ofLists],
  [`${doubled(13)}{{ a | map: "i" | json | size }}`, ofMany],
  [`${doubled(13)}{{ a | json | size }}`, ofMany],
  [`${doubled(13)}{{ a | sort: "i" | size }}`, ofMany],
  [`${doubled(13)}{{ a | sum: "i" }}`, ofMany],
  [`{% assign b = v[0].i %}${doubled(13)}{{ a | where: "i", b | size }}`, ofMany],
  [`${doubled(13)}{{ a }}`, { v: [long] }],
  [`${doubled(13)}{% capture b %}{{ a }}{% endcapture %}`, { v: [long] }],
  [`${doubled(13)}{% if a contains "b" %}{% endif %}{{ x[a] }}`, { v: [long], x: { y: 1 } }],
  [`${doubled(13)}{% for n in (1..100) %}{% assign a = a | reverse %}{% cycle a: n %}{% endfor %}`, { v: [long] }],
  [names.map((name) => `{% assign ${name} = (1..199000) %}`).join(''), {}],
  [`${'{% for n in a reversed %}'.repeat(1400)}${'{% endfor %}'.repeat(1400)}`, { a: Array.from({ length: 20_000 }, () => 1) }],
  [names.map((name) => `{% assign ${name} = s | append: "b" | upcase %}`).join(''), { s: long }],
  [names.map((name) => `{% assign ${name} = s | split: "aa" %}`).join(''), { s: long }],
  [names.map((name) => `{% assign ${name} = s | escape %}`).join(''), { s: '"é'.repeat(30_000) }],
  [`{{ s ${'| url_encode | url_decode '.repeat(8000)}}}`, { s: long }],
  [`{{ s ${'| url_encode | url_decode '.repeat(49)}}}`, { s: long }],
  [`{% assign b = (1..199000) %}{% assign c = (1..199000) %}{% if ${'b==c or '.repeat(1000)}b==c %}x{% endif %}`, {}],
  [`{% assign b = (1..199000) %}{% assign c = (1..199000) %}{% case b %}{% when ${'c,'.repeat(3000)}c %}x{% endcase %}`, {}],
  [`{{ list | map: "${'x.'.repeat(40_000)}" | size }}`, { list: Array.from({ length: 9999 }, () => ({ x: 1 })) }],
]

describe('a hostile template', () => {
  test.each(attacks.map(([text, variables]) => [text.slice(0, 90), text, variables] as const))(
    'ends without its process: %s',
    async (_, text, variables) => {
      expect(await render({ text }, variables)).toBeInstanceOf(Object)
      expect(await render({ html: text }, variables)).toBeInstanceOf(Object)
    },
  )

  test('fills the memory neither by its syntax nor by the parsed templates that are kept', async () => {
    for (let nth = 0; nth < 3; nth++)
      for (const unit of ['a<b or ', 'a|abs ', '1,'])
        for (const most of [80, 9000]) {
          const tag =
            unit === 'a<b or '
              ? `{% if ${unit.repeat(most / 7)}a %}{% endif %}`
              : `{{ a${unit === '1,' ? '|plus:' : ''}${unit.replace('a|', '|').repeat(most / unit.length)}1 }}`
          const text = tag.repeat(Math.min(1490, Math.floor(262_000 / tag.length))) + nth
          await render({ html: text, text }, null)
        }
  }, 120_000)

  test('of any lists and filters ends in the same way', async () => {
    const piece = fc.constantFrom(
      '{% assign a = a | concat: a %}',
      '{% assign a = v | map: "i" %}',
      '{% assign a = a | first %}',
      '{% assign a = s | split: "" %}',
      '{% assign a = s | append: s | split: "é" %}',
      '{% assign s = s | append: s %}',
      '{% assign s = a | join: s %}',
      '{% assign s = a | json %}',
      '{% assign v = v | concat: v %}',
      '{% assign a = a | sort | uniq %}',
      '{% assign a = (1..150000) %}',
      '{% for x in a reversed %}',
      '{% for x in (1..9999) %}',
      '{% endfor %}',
      '{% capture s %}',
      '{% endcapture %}',
      '{{ a }}',
      '{{ s }}',
      '{{ v }}',
      '{{ v | map: "i" }}',
      '{{ a | upcase | escape }}',
      '{{ a | url_encode }}',
      '{% cycle a: s, a %}',
      '{% if a == a or s contains a %}{% endif %}',
    )
    const item = fc.record({ i: fc.array(fc.constantFrom('é', 'a'.repeat(9000), 'ab'), { maxLength: 9 }) })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(piece, fc.integer({ min: 1, max: 14 })), { maxLength: 12 }),
        fc.array(item, { minLength: 1, maxLength: 3 }),
        fc.constantFrom('html' as const, 'text' as const),
        async (pieces, v, part) => {
          const source = pieces.map(([one, times]) => one.repeat(times)).join('')
          const opened = [...source.matchAll(/\{% (for|capture) /g)].map(([, name]) => `{% end${name} %}`)
          expect(await render({ [part]: source + opened.reverse().join('') }, { v, a: v, s: 'aé'.repeat(20_000) })).toBeInstanceOf(Object)
        },
      ),
      { numRuns: 120 },
    )
  }, 240_000)
})
