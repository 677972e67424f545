/**
 * Text generated from html: readable for real mail, limited for attacks.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { textFromHtml } from './html-text.ts'

/** Large enough that the plain scan is used. */
const enlarged = (html: string) => html + ' '.repeat(300_001)

describe('text from html', () => {
  test('keeps the visible text, with the targets of links', () => {
    const html = `<html><head><title>T</title><style>p { color: red }</style></head><body>
      <h1>Hello</h1><p>Your order&nbsp;<b>4711</b> &amp; more.</p><ul><li>One</li><li>Two</li></ul>
      <a href="https://example.com/x">Track it</a> <a href="https://example.com">https://example.com</a><img src="a.png" alt="pixel">
      <script>alert(1)</script></body></html>`
    const text = textFromHtml(html)
    expect(text).toMatch(/^HELLO\n\nYour order\s4711 & more\.\n\n \* One\n \* Two/)
    expect(text).toContain('Track it [https://example.com/x] https://example.com')
    expect(text).not.toMatch(/color|alert|pixel|\[https:\/\/example\.com\]/)
  })

  test('is whole for tables in tables as deep as real templates have them, and for unclosed paragraphs', () => {
    const deep = `${'<table><tbody><tr><td>'.repeat(100)}inside${'</td></tr></tbody></table>'.repeat(100)}`
    expect(textFromHtml(deep)).toBe('inside')
    expect(textFromHtml('<p>word'.repeat(600))).toBe(Array(600).fill('word').join('\n\n'))
  })

  test('of large html comes from a scan that drops tags, comments and parts that readers do not see', () => {
    const html = `<head><title>T</title></head><STYLE>p > b {}</STYLE><header>Top</header><!-- <p>not > this</p> --><p>2 < 3 &amp;&lt;ok&gt;</p>
      line<br>next<script>"</p>"</script><div>end`
    expect(textFromHtml(enlarged(html)).replace(/\s+/g, ' ')).toBe('Top 2 < 3 &<ok> line next end')
    expect(textFromHtml(enlarged('İİİ<style>x</style>after'))).toBe('İİİafter')
  })

  test.each([
    ['tags inside each other', '<div>'.repeat(50_000)],
    ['quotes inside each other', `${'<blockquote>'.repeat(490)}${'<p>x</p>'.repeat(9000)}`],
    ['tables inside each other', '<table><tr><td>'.repeat(499)],
    ['unclosed styles', '<style>'.repeat(500_000)],
    ['unclosed comments', '<!--'.repeat(1_000_000)],
    ['opening brackets', '<'.repeat(500_000)],
    ['closed styles', '<style></style>'.repeat(200_000)],
    ['line ends and form feeds', '\n \f'.repeat(300_000)],
    ['ampersands', '&'.repeat(2_000_000)],
  ])('takes %s in little time and space', (_, html) => {
    const began = process.cpuUsage()
    const text = textFromHtml(html)
    // Processor time, because other tests share the machine.
    expect(process.cpuUsage(began).user).toBeLessThan(5_000_000)
    expect(text.length).toBeLessThanOrEqual(html.length * 2)
  })
})

describe('always', () => {
  const piece = fc.oneof(
    fc.constantFrom('<p>', '</p>', '<b', '<!--', '-->', '<style>', '</style', '<td>', '<ul>', '&amp;', '<', '>', '"', '\n'),
    fc.string(),
  )
  const html = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))

  test('any html becomes text, on either way', () => {
    fc.assert(
      fc.property(html, (some) => {
        expect(typeof textFromHtml(some)).toBe('string')
        expect(textFromHtml(enlarged(some)).length).toBeLessThanOrEqual(some.length + 1)
      }),
      { numRuns: 60 },
    )
  })
})
