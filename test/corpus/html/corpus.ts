/**
 * Several hundred emails of the kinds that occur: every layout in several languages and ways of writing links; the same, damaged as mail is
 * damaged on its way; the handwritten files beside this one; and one email of a megabyte.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { layouts } from './layouts.ts'
import { languages, letterOf, linkStyles } from './letters.ts'

export interface Sample {
  name: string
  html: string
}

/** Damage that HTML suffers from careless editing and programs. */
const accidents: Record<string, (html: string) => string> = {
  'cut off': (html) => html.slice(0, Math.floor(html.length * 0.71)),
  'without end tags': (html) => html.replace(/<\/(?:td|tr|p|li|body|html)>/g, ''),
  'end tags misnested': (html) => html.replaceAll('</a></p>', '</p></a>').replaceAll('</span></a>', '</a></span>'),
  'two bodies': (html) => html.replace(/<body([^>]*)>/, '<body$1><body class="second">').replace('</body>', '</body><p>after</p></body>'),
  'comment left open': (html) => html.replace(/<!--<!\[endif\]-->/, ''),
  'quotes lost': (html) => html.replace(/ (width|align|class)="([^"]*)"/g, ' $1=$2'),
  'lines wrapped inside tags': (html) => html.replace(/ (href|style|class|bgcolor)=/g, '\r\n$1='),
  'in one line': (html) => html.replace(/\n+/g, ''),
  'with CRLF': (html) => html.replaceAll('\n', '\r\n'),
  'escaped twice': (html) => html.replaceAll('&amp;', '&amp;amp;'),
  'with a footer behind': (html) => `${html}\n<br><font size="1">This e-mail is confidential. <a href="http://list.example/footer?a=1&b=2">List</a></font>\n`,
  'with NUL and stray signs': (html) => html.replace('<p>', '<p>\u0000 << <> </ > &#0; <'),
}

export function corpus(): Sample[] {
  const samples: Sample[] = []
  const styles = Object.entries(linkStyles)
  const kinds = Object.entries(layouts)
  for (const [kind, [layout, write]] of kinds.entries()) {
    for (let number = 0; number < languages; number++) {
      const [style, href] = styles[(number + kind) % styles.length] as (typeof styles)[number]
      samples.push({ name: `${layout}, letter ${number}, ${style}`, html: write(letterOf(number + kind * languages, href)) })
    }
  }
  for (const [index, [accident, happen]] of Object.entries(accidents).entries()) {
    for (let turn = 0; turn < 5; turn++) {
      const [layout, write] = kinds[(index * 5 + turn * 3) % kinds.length] as (typeof kinds)[number]
      const [, href] = styles[(index + turn) % styles.length] as (typeof styles)[number]
      samples.push({ name: `${layout}, ${accident}`, html: happen(write(letterOf(index + turn, href))) })
    }
  }
  for (const file of readdirSync(import.meta.dirname).filter((name) => name.endsWith('.html')))
    samples.push({ name: file, html: readFileSync(`${import.meta.dirname}/${file}`, 'utf8') })
  const digest = layouts['a digest'] as (typeof kinds)[number][1]
  const pages = Array.from({ length: 40 }, (_, number) => digest(letterOf(number, styles[number % styles.length]?.[1] as (typeof styles)[number][1])))
  samples.push({ name: 'a megabyte', html: pages.join('\n').padEnd(1_048_576, '<p>and so on</p>') })
  return samples
}
