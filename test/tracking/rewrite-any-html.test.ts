/** HTML of every shape, tracked, and read by an independent parser before and after. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openTokens, trackHtml } from '#tracking'
import { faultsOf } from '../support/parse-html.ts'

const ids = openIds(systemRandom)
const tokens = openTokens(openSecrets('a secret of tests', systemRandom))
const recipient = { tenantId: ids.tenantId(), emailId: ids.emailId(0) }
const origin = 'https://click.shop.example'
const excluded = ['own.example']
const read = (token: string) => tokens.read(token, 'click')?.url

/** Pieces from which a careless writer, or an attacker, makes HTML. */
const piece = fc.constantFrom(
  '<',
  '</',
  '<a ',
  '<a',
  '<A\n',
  '<area ',
  'href=',
  'HREF = ',
  'href',
  '"',
  "'",
  '>',
  '/>',
  '/',
  '=',
  ' ',
  '\n',
  'x',
  '&',
  '&amp;',
  '&#x2f;',
  '&copy',

  'https://a.example/',
  'http://b.example/?c=d',
  'https://own.example',
  'mailto:x@y.example',
  '#z',
  'data-no-track',
  ' data-no-track ',
  'title="',

  '<!--',
  '-->',
  '--!>',
  '<!-->',
  '<!--->',
  '<!',
  '<?',
  '--',
  '<style>',
  '</style>',
  '<script>',
  '</script>',
  '<script',
  '</script ',
  '<title>',
  '</title>',

  '<textarea>',
  '</textarea>',
  '<p>',
  '</p>',
  '<td>',
  '</a>',
  '<b>',
  '</b>',
  '<body>',
  '</body>',
  '<table>',
  '<br>',
  '<!--[if mso]>',
  '<![endif]-->',
  '<plaintext>',
)
const anchor = fc.constantFrom(
  '<a href="https://a.example/">',
  "<a href='http://b.example/?c=d&amp;e'>",
  '<area href=https://c.example/>',
  '<a href="https://d.example/" href="https://e.example/">',
  '<a data-no-track href="https://f.example/">',
  '<script><!-- <script></script><a href="https://g.example/">--></script>',
)
const document = fc
  .array(fc.oneof({ weight: 6, arbitrary: piece }, { weight: 3, arbitrary: anchor }, fc.string({ maxLength: 6 })), { maxLength: 16 })
  .map((pieces) => pieces.join(''))

test('only the href values of counted links change, and the parser sees the same document', () => {
  fc.assert(
    fc.property(document, (html) => {
      const after = trackHtml(html, { origin, clicks: true, opens: false, excluded }, recipient, tokens)
      expect(faultsOf(html, after, { origin, excluded, read })).toEqual([])
    }),
    { numRuns: 3000 },
  )
})
