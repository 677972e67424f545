/** Templates that are made to cost processor time and memory: a tenant may write hostile ones. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maxOutputOctets, renderSource, TemplateProblem } from '../../src/templates/liquid.ts'
import { cpuUnits, quickCpuUnits } from '../support/cpu-time.ts'

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

/** Some 60 ms. */
const maxUnits = 300

describe('a hostile template', () => {
  test.each(attacks.map(([source, variables]) => [source.slice(0, 70), source, variables] as const))(
    'ends within little processor time and 5 MB: %s',
    (_, source, variables) => {
      let length = 0
      const units = cpuUnits(() => {
        try {
          const { rendered } = renderSource({ subject: 'x', html: source }, variables ?? {})
          length = Math.max(length, Buffer.byteLength(rendered.html ?? ''))
        } catch (error) {
          expect(error).toBeInstanceOf(TemplateProblem)
        }
      }, 3)
      expect(length).toBeLessThanOrEqual(maxOutputOctets)
      expect(units).toBeLessThan(maxUnits)
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
    const unitsOf = quickCpuUnits(maxUnits, 1)
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const work = () => {
          try {
            renderSource({ subject: 'x', html: pieces.join('') }, { x: 'a'.repeat(1000), list: ['a', 'b'] })
          } catch (error) {
            expect(error).toBeInstanceOf(TemplateProblem)
          }
        }
        expect(unitsOf(work)).toBeLessThan(maxUnits)
      }),
      { numRuns: 150 },
    )
  })
})
