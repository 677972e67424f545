import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { renderSource, TemplateProblem } from './liquid.ts'

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
