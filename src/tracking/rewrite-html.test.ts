import { describe, expect, it, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openTokens } from './link-tokens.ts'
import { trackHtml, trackHtmlOctets } from './rewrite-html.ts'

const ids = openIds(systemRandom)
const tokens = openTokens(openSecrets('a secret of tests', systemRandom))
const recipient = { tenantId: ids.tenantId(), emailId: ids.emailId(0) }
const origin = 'https://click.shop.example'
const clicks = { origin, clicks: true, opens: false, excluded: ['own.example'] }
const opens = { origin, clicks: false, opens: true, excluded: [] }

const tracked = (html: string) => trackHtml(html, clicks, recipient, tokens)
const link = /https:\/\/click\.shop\.example\/c\/([\w-]+)/g
/** Replaces every tracking link with the content of its token, in braces. */
const shown = (html: string) => tracked(html).replace(link, (_, token: string) => `{${tokens.read(token, 'click')?.url}}`)

describe('a link is rewritten', () => {
  test.each([
    ['<a href="https://a.example/">x</a>', '<a href="{https://a.example/}">x</a>'],
    ["<A class=b HREF = 'http://a.example?x=1#y' >", "<A class=b HREF = '{http://a.example?x=1#y}' >"],
    ['<a href=https://a.example/p/>x</a>', '<a href={https://a.example/p/}>x</a>'],
    ['<area shape=rect href="https://a.example/">', '<area shape=rect href="{https://a.example/}">'],
    ['<a\n\thref="HTTPS://A.Example/B">', '<a\n\thref="{HTTPS://A.Example/B}">'],
    ['<a href=" https://a.example/\n ">', '<a href="{https://a.example/}">'],
    ['<a href="https://a.exa\nmple/">', '<a href="{https://a.example/}">'],
    ['<a href="https://a.example/?a=1&amp;b=2&copy=3&#x26;c=4&#38;d">', '<a href="{https://a.example/?a=1&b=2&copy=3&c=4&d}">'],
    ['<a href="&#104;ttps&colon;&sol;&sol;a.example">', '<a href="{https://a.example}">'],
    ['<a href="https://ä.example/ö?ü">', '<a href="{https://ä.example/ö?ü}">'],
    ['<a title="a > b" href="https://a.example/">', '<a title="a > b" href="{https://a.example/}">'],
    ['<a/href="https://a.example/"/>', '<a/href="{https://a.example/}"/>'],
    ['<a href="https://a.example/" href="https://b.example/">', '<a href="{https://a.example/}" href="https://b.example/">'],
    [
      '<!--[if !mso]><!--><a href="https://a.example/"><!--<![endif]-->',
      '<!--[if !mso]><!--><a href="{https://a.example/}"><!--<![endif]-->',
    ],
    ['<![if !mso]><a href="https://a.example/"><![endif]>', '<![if !mso]><a href="{https://a.example/}"><![endif]>'],
    ['<!--><a href="https://a.example/">', '<!--><a href="{https://a.example/}">'],
    ['<style>a>b{}</style><a href="https://a.example/">', '<style>a>b{}</style><a href="{https://a.example/}">'],
    ['1 < 2 <a href="https://notown.example/">', '1 < 2 <a href="{https://notown.example/}">'],
  ])('%j', (html, expected) => {
    expect(shown(html)).toBe(expected)
  })
})

describe('is left as it is', () => {
  test.each([
    '<a href="mailto:a@a.example">',
    '<a href="tel:+49301">',
    '<a href="#top">',
    '<a href="/path">',
    '<a href="//a.example/">',
    '<a href="ftp://a.example/">',
    '<a href="javascript:location=\'https://a.example/\'">',
    '<a href="http:a.example">',
    '<a href="https:\\\\a.example">',
    '<a href="https://">',
    '<a href="https://a example/">',
    '<a href>',
    '<a href="">',
    '<a href href="https://a.example/">',
    '<a name="https://a.example/">',
    '<a data-href="https://a.example/">',
    '<a href="https://own.example/">',
    '<a href="https://OWN.example./">',
    '<a href="https://www.own.example/x">',
    '<a href="https://click.shop.example/u/x">',
    '<a href="https://a.example/" data-no-track>',
    '<a DATA-NO-TRACK="" href="https://a.example/">',
    '<link href="https://a.example/">',
    '<base href="https://a.example/">',
    '<abbr href="https://a.example/">',
    '<v:rect href="https://a.example/">',
    '<img src="https://a.example/"><form action="https://a.example/">',
    '<!-- <a href="https://a.example/"> -->',
    '<!--[if mso]><v:rect href="https://a.example/"/><a href="https://a.example/">x</a><![endif]-->',
    '<!-- <a href="https://a.example/">',
    '<!doctype <a href="https://a.example/">',
    '<? <a href="https://a.example/">',
    '</ <a href="https://a.example/">',
    '</a href="https://a.example/">',
    '<style><a href="https://a.example/"></style>',
    '<title><a href="https://a.example/"></titles></title>',
    '<textarea><a href="https://a.example/">',
    '<script>"<a href=https://a.example/>"</script>',
    '<script><!-- <script> </script> <a href="https://a.example/"> --></script>',
    '<template><template></template><a href="https://a.example/"></template>',
    '<plaintext></plaintext><a href="https://a.example/">',
    '<a href="https://a.example/',
    '<a href="https://a.example/" ',
    '<a title="<a href=\'https://a.example/\'>">',
    `<a href="https://a.example/${'x'.repeat(2000)}">`,
    `<a href="${' '.repeat(20_000)}https://a.example/">`,
    '<a href="https://a.example/&#1;x">',
  ])('%j', (html) => {
    expect(tracked(html)).toBe(html)
  })

  it('is every link beyond the two thousandth', () => {
    const html = Array.from({ length: 2010 }, (_, index) => `<a href="https://a.example/${index}">`).join('')
    expect(tracked(html).match(link)).toHaveLength(2000)
    expect(tracked(html)).toContain('<a href="https://a.example/2009">')
  })
})

describe('the pixel', () => {
  const place = (html: string) =>
    trackHtml(html, opens, recipient, tokens).replace(/<img src="https:\/\/click\.shop\.example\/o\/[^>]*>/, '{}')
  test.each([
    ['<body>a</body>', '<body>a{}</body>'],
    ['<body>a</BODY ></html>', '<body>a{}</BODY ></html>'],
    ['</body><p></body>b', '</body><p>{}</body>b'],
    ['<body>a</body><!-- </body> -->', '<body>a{}</body><!-- </body> -->'],
    ['Hello', 'Hello{}'],
    ['a<!-- never ends </body>', 'a{}<!-- never ends </body>'],
    ['a<p title="', 'a{}<p title="'],
    ['a<style>p{}', 'a{}<style>p{}'],
    ['a<template>b', 'a{}<template>b'],
    ['', ''],
  ])('%j', (html, expected) => {
    expect(place(html)).toBe(expected)
  })

  it('asks with a token of its own, and is one pixel with any style sheet', () => {
    const html = trackHtml('x', opens, recipient, tokens)
    const [, token = ''] =
      /^x<img src="https:\/\/click\.shop\.example\/o\/([\w-]+)" width="1" height="1" alt="" style="[^"]*width:1px!important/.exec(html) ??
      []
    expect(tokens.read(token, 'open')).toEqual({ kind: 'open', url: '', ...recipient })
  })
})

describe('any html', () => {
  test.each([
    '<a ',
    '<a href="',
    '<a href="https://a.example/">',
    '<!--',
    '<!',
    '<?',
    '</',
    '<',
    '<script><!--',
    '<style>',
    '<template>',
    '<a href=',
    '&',
    '<a href="&amp;',
    ' ',
  ])('five megabytes of %j take less than a second of work', (unit) => {
    const html = unit.repeat(Math.ceil(5_242_880 / unit.length))
    const cpuMs = () => {
      const began = process.cpuUsage()
      trackHtml(html, { ...clicks, opens: true }, recipient, tokens)
      trackHtml(`<a href="${html}">`, { ...clicks, opens: true }, recipient, tokens)
      return process.cpuUsage(began).user / 1000
    }
    // Processor time, and the least of three, because other tests share the machine.
    expect(Math.min(cpuMs(), cpuMs(), cpuMs())).toBeLessThan(1000)
  })
})

describe('octets of another charset', () => {
  const octets = (html: Buffer, charset: string) => trackHtmlOctets(html, charset, clicks, recipient, tokens)
  const html = '<p>Gr\u00fc\u00dfe</p><a href="https://a.example/">x</a><a href="https://a.example/\u00fc">y</a>'

  it('keep every octet, and links in US-ASCII are rewritten', () => {
    const changed = octets(Buffer.from(html, 'latin1'), 'ISO-8859-1')?.toString('latin1') ?? ''
    expect(changed.replace(link, 'https://a.example/')).toBe(html)
    expect(changed.match(link)).toHaveLength(1)
  })

  it('that are UTF-8 have all links rewritten', () => {
    expect(octets(Buffer.from(html), 'utf-8')?.toString().match(link)).toHaveLength(2)
  })

  it('whose markup may not be as it seems stay the same', () => {
    for (const charset of ['utf-16', 'utf-7', 'iso-2022-jp', 'hz-gb-2312', 'ibm037'])
      expect(octets(Buffer.from(html), charset)).toBeUndefined()
  })

  it('whose UTF-8 is broken keep every octet', () => {
    const broken = Buffer.concat([Buffer.of(0xff, 0xc3), Buffer.from('<a href="https://a.example/">')])
    expect(octets(broken, 'utf-8')?.subarray(0, 2)).toEqual(Buffer.of(0xff, 0xc3))
  })
})
