/** The contrast of the dashboard's colours (WCAG 2.2, 1.4.3 and 1.4.11) in both themes, and the table of it in dashboard/DESIGN.md. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const themes = ['light', 'dark'] as const
type Theme = (typeof themes)[number]

const css = readFileSync('dashboard/src/style.css', 'utf8')
const tokens = new Map(
  [...css.matchAll(/--color-([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name = '', light = '', dark = '']) => [
    name,
    { light, dark },
  ]),
)

const text = 4.5
/** Marks of charts and the edges of controls. */
const graphic = 3
const pairs: readonly [text: string, on: string, atLeast: number][] = [
  ['ink', 'paper', text],
  ['ink', 'sheet', text],
  ['ink', 'raise', text],
  ['ink', 'accent-back', text],
  ['paper', 'ink', text],
  ['soft', 'paper', text],
  ['soft', 'sheet', text],
  ['soft', 'raise', text],
  ['soft', 'line', text],
  ['soft', 'accent-back', text],
  ['accent', 'paper', text],
  ['accent', 'sheet', text],
  ['accent', 'raise', text],
  ['on-brand', 'brand', text],
  ['good', 'good-back', text],
  ['good', 'paper', text],
  ['wait', 'wait-back', text],
  ['wait', 'paper', text],
  ['bad', 'bad-back', text],
  ['bad', 'paper', text],
  ['bad', 'raise', text],
  ['edge', 'paper', graphic],
  ['chart-good', 'paper', graphic],
  ['chart-wait', 'paper', graphic],
  ['chart-bad', 'paper', graphic],
  ['chart-bounce', 'paper', graphic],
  ['chart-complaint', 'paper', graphic],
]

/** The relative luminance of a colour such as `#1c1b18`. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(name: string, on: string, theme: Theme): number {
  const [one, other] = [name, on].map((token) => luminance(tokens.get(token)?.[theme] ?? '')).sort((a, b) => b - a)
  return ((one ?? 0) + 0.05) / ((other ?? 0) + 0.05)
}

/** Rounded down, so that no figure promises more than there is. */
const shown = (ratio: number) => (Math.floor(ratio * 10) / 10).toFixed(1)

test.each(pairs)('%s on %s is readable in both themes', (name, on, atLeast) => {
  for (const theme of themes) expect(contrast(name, on, theme), theme).toBeGreaterThanOrEqual(atLeast)
})

test('the design page has the same figures', () => {
  const rows = pairs.map(([name, on, atLeast]) => {
    const [light, dark] = themes.map((theme) => shown(contrast(name, on, theme)))
    return `| \`${name}\` | \`${on}\` | ${light} | ${dark} | ${atLeast} |`
  })
  const table = /<!-- contrast -->\n([\s\S]*?)\n<!-- \/contrast -->/.exec(readFileSync('dashboard/DESIGN.md', 'utf8'))?.[1]
  expect(table?.split('\n').slice(2)).toEqual(rows)
})
