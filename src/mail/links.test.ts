/**
 * Links as a recipient finds them.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { linksOf } from './links.ts'

describe('the links of a message', () => {
  test.each([
    ['<a href="https://a.example/?x=1&amp;y=2">', 'https://a.example/?x=1&y=2'],
    ["<A class='b>c' HREF = 'http://a.example'>", 'http://a.example'],
    ['<a\nhref=https://a.example/b>', 'https://a.example/b'],
    ['<area href="https://a.example/area">', 'https://a.example/area'],
    ['<a href="&#104;ttps://a.example/&#x41;">', 'https://a.example/A'],
    ['<a href="mailto:a@b.example">', 'mailto:a@b.example'],
  ])('html %j leads to %s', (html, link) => expect(linksOf({ html })).toEqual([link]))

  test.each([
    '<a name="x">',
    '<a data-href="https://a.example">',
    '<a href="#top">',
    '<a href="javascript:alert(1)">',
    '<!-- <a href="https://a.example"> -->',
    '<abbr href="https://a.example">',
    '<img src="https://a.example/pixel">',
  ])('html %j leads nowhere', (html) => expect(linksOf({ html })).toEqual([]))

  test('of text end before the punctuation of the sentence', () => {
    const text = 'See https://a.example/b?c=d, (https://a.example/e) or <https://a.example/f_(g)>. http://a.example.'
    const found = ['https://a.example/b?c=d', 'https://a.example/e', 'https://a.example/f_(g)', 'http://a.example']
    expect(linksOf({ text })).toEqual(found)
  })

  test('are listed once each, those of html first', () => {
    expect(
      linksOf({ html: '<a href="https://b.example"><a href="https://a.example">', text: 'https://a.example https://c.example' }),
    ).toEqual(['https://b.example', 'https://a.example', 'https://c.example'])
  })
})

describe('always', () => {
  test('a megabyte of anything is read within a second', () => {
    for (const piece of ['<a ', '<a href=', "<a '", '<!--', '<', 'https://', '<a href="', '&#', 'href = ']) {
      const text = piece.repeat(1_000_000 / piece.length)
      const cpuMs = () => {
        const began = process.cpuUsage()
        expect(linksOf({ html: text, text }).length).toBeLessThan(501)
        const { user, system } = process.cpuUsage(began)
        return (user + system) / 1000
      }
      // CPU time and not elapsed time, and the least of three, because other tests use the processor too.
      expect(Math.min(cpuMs(), cpuMs(), cpuMs()), piece).toBeLessThan(1000)
    }
  }, 60_000)

  test('any html and text give an answer', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (html, text) => {
        for (const link of linksOf({ html: `<a href="${html}">${html}`, text })) expect(link).toMatch(/^(?:https?|mailto|tel|sms):/i)
      }),
    )
  })
})
