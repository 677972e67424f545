import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maxOutputOctets, renderSource, TemplateProblem } from './liquid.ts'

const html = (source: string, variables: object = {}) => renderSource({ subject: 'x', html: source }, variables).rendered.html

/** A template in which the value is in several places of HTML, and passes filters. */
const places = [
  '{{ x }}',
  '<a title="{{ x }}">',
  "<a title='{{ x }}'>",
  '{{ x | append: x }}',
  '{{ x | upcase }}',
  '{{ x | replace: "a", "b" }}',
  '{% assign y = x %}{{ y }}',
  '{% capture y %}{{ x }}{% endcapture %}{{ y }}',
  '{% for y in list %}{{ y }}{% endfor %}',
  '{{ list | join: ", " }}',
  '{{ object.x }}',
  '{{ nothing | default: x }}',
  '{% cycle x, "b" %}',
  '{% case x %}{% when "b" %}b{% else %}{{ x | truncate: 20 }}{% endcase %}',
]

const hostile = fc.string({ unit: fc.constantFrom('<', '>', '"', "'", '&', 'script', 'a', ' ', '=', '{{', '}}', '{%', '\n', 'é', '😀') })

describe('values in HTML', () => {
  test('never leave their place: no tag and no end of an attribute comes from a value', () => {
    fc.assert(
      fc.property(hostile, fc.constantFrom(...places), (x, place) => {
        const made = html(place, { x, list: [x, x], object: { x } }) ?? ''
        const fixed = place.replace(/\{[{%].*?[%}]\}/g, '')
        const marks = (text: string) => text.replace(/[^<>"']/g, '')
        expect(marks(made)).toBe(marks(fixed))
      }),
      { numRuns: 300 },
    )
  })

  test('are the same characters after unescaping', () => {
    fc.assert(
      fc.property(hostile, (x) => {
        const unescaped = (html('{{ x }}', { x }) ?? '').replace(
          /&(lt|gt|amp|#34|#39);/g,
          (_, name: string) => ({ lt: '<', gt: '>', amp: '&', '#34': '"', '#39': "'" })[name] ?? '',
        )
        expect(unescaped).toBe(x)
      }),
    )
  })

  test('are raw only where the template asks for it, and plain in text and subject', () => {
    expect(html('{{ x | raw }}', { x: '<b>' })).toBe('<b>')
    const { subject, text } = renderSource({ subject: '{{ x }}', text: '{{ x }}' }, { x: '<b> & "c"' }).rendered
    expect([subject, text]).toEqual(['<b> & "c"', '<b> & "c"'])
  })

  test('are no templates themselves', () => {
    expect(html('{{ x | raw }}', { x: '{{ y }}{% assign z = 1 %}', y: 1 })).toBe('{{ y }}{% assign z = 1 %}')
  })
})

describe('a template reaches only its variables', () => {
  test.each([
    '{{ x.constructor }}',
    '{{ x.__proto__ }}',
    '{{ x.toString }}',
    '{{ constructor }}',
    '{{ process }}',
    '{% render "a" %}',
    '{% include "a" %}',
    '{% layout "a" %}',
    '{% liquid echo 1 %}',
    '{{ x | where_exp: "y", "y" }}',
    '{{ x | sha256 }}',
  ])('%s', (source) => {
    expect(() => html(source, { x: {} })).toThrow(TemplateProblem)
  })
})

const large = 'a'.repeat(100_000)
const items = Array.from({ length: 9999 }, (_, nth) => ({ a: String(nth % 7), b: -nth }))
const grow = '{% for i in (1..100) %}{% capture a %}{{ a | raw }}{{ a | raw }}{% endcapture %}{% endfor %}'

/** Each makes more work than its length suggests. */
const attacks: [string, object?][] = [
  ['{% for a in (1..100000000) %}{% endfor %}'],
  ['{% for a in (1..199000) %}{% for b in (1..199000) %}{% endfor %}{% endfor %}'],
  ['{% for a in (1..1000) %}{% for b in (1..1000) %}{% for c in (1..1000) %}x{% endfor %}{% endfor %}{% endfor %}'],
  ['{% for a in (1..100000) %}{{ large }}{% endfor %}', { large }],
  ['{% for a in (1..100000) %}{{ large | raw }}{% endfor %}', { large }],
  [`{% assign a = "aaaaaaaaaa" %}${grow}`],
  [
    `{% assign a = "aaaaaaaaaa" %}${grow.replace('{% capture a %}{{ a | raw }}{{ a | raw }}{% endcapture %}', '{% assign a = a | append: a %}')}`,
  ],
  ['{% capture a %}{% for b in (1..100000) %}{{ large | raw }}{% endfor %}{% endcapture %}', { large }],
  ['{{ large | replace: "a", large }}', { large }],
  ['{{ large | split: "" | join: large }}', { large }],
  ['{{ large | split: "" | sort | uniq | size }}', { large }],
  ['{{ items | sort: "b" | where: "a", "1" | map: "a" | uniq | join }}', { items }],
  ['{{ items | json }}'.repeat(100), { items }],
  ['{{ "2026-01-01" | date: "%100000000d" }}'],
  ['{{ "2026-01-01" | date: large }}', { large: '%c'.repeat(40_000) }],
  ['{% if large contains b %}1{% endif %}'.repeat(1000), { large, b: `${'a'.repeat(50_000)}b` }],
  ['{{ large | truncatewords: 100000 }}'.repeat(1000), { large: 'a '.repeat(49_999) }],
  ['{{ large | newline_to_br }}'.repeat(1000), { large: '\n'.repeat(90_000) }],
  ['{{ large | url_encode }}'.repeat(1000), { large: 'é'.repeat(90_000) }],
  ['{% if a %}'.repeat(1400) + '{% endif %}'.repeat(1400), { a: 1 }],
  ['{{ a }}'.repeat(5000), { a: 1 }],
]

describe('a hostile template', () => {
  test.each(attacks.map(([source, variables]) => [source.slice(0, 70), source, variables] as const))(
    'ends within 50 ms of processor time and 5 MB: %s',
    (_, source, variables) => {
      // Compiled code is part of the program: the first run of any template is slower.
      const run = () => {
        const since = process.threadCpuUsage()
        let length = 0
        try {
          const { rendered } = renderSource({ subject: 'x', html: source }, variables ?? {})
          length = Buffer.byteLength(rendered.html ?? '')
        } catch (error) {
          expect(error).toBeInstanceOf(TemplateProblem)
        }
        const { user, system } = process.threadCpuUsage(since)
        return { length, spentMs: (user + system) / 1000 }
      }
      const [first, second] = [run(), run()]
      expect(Math.max(first.length, second.length)).toBeLessThanOrEqual(maxOutputOctets)
      expect(Math.min(first.spentMs, second.spentMs)).toBeLessThan(50)
    },
  )

  test('of any tags, filters and values ends in the same way', () => {
    const piece = fc.constantFrom(
      '{% for a in (1..9999) %}',
      '{% for a in list %}',
      '{% endfor %}',
      '{% capture x %}',
      '{% endcapture %}',
      '{% assign x = x | append: x %}',
      '{% assign list = x | split: "" %}',
      '{{ x | raw }}',
      '{{ x | replace: "a", x }}',
      '{{ list | join: x | size }}',
      '{% if x contains "b" %}',
      '{% endif %}',
      'text',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const since = process.threadCpuUsage()
        try {
          renderSource({ subject: 'x', html: pieces.join('') }, { x: 'a'.repeat(1000), list: ['a', 'b'] })
        } catch (error) {
          expect(error).toBeInstanceOf(TemplateProblem)
        }
        const { user, system } = process.threadCpuUsage(since)
        // Compilation and garbage collection of this process count too.
        expect((user + system) / 1000).toBeLessThan(120)
      }),
      { numRuns: 150 },
    )
  })
})
