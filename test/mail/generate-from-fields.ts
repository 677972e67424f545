/**
 * From fields as attackers and careless programs write them, from a seed: forms that the grammar of RFC 5322 allows and forms that it does
 * not. A bank's address is placed wherever a reader might find it. Also the readings of other programs.
 */
import { createRequire } from 'node:module'
import { addressParser as postalMimeParser } from 'postal-mime'
import { randomFrom } from '../support/mutate-message.ts'

const requireFromHere = createRequire(import.meta.url)
const requireFromMailauth = createRequire(requireFromHere.resolve('mailauth'))
type Parsed = { address?: string | undefined; group?: Parsed[] | undefined }
const nodemailerParser = requireFromHere('nodemailer/lib/addressparser') as (text: string) => Parsed[]
const mailauthParser = requireFromMailauth('nodemailer/lib/addressparser') as (text: string) => Parsed[]

const own = 'hello@own.example'
const bank = 'ceo@bank.example'

const addresses = [
  own,
  bank,
  own,
  '"hello"@own.example',
  '"he llo"@own.example',
  `"${bank}"@own.example`,
  'hello(x)@own.example',
  'hello@(x)own.example',
  'hello @ own.example',
  'hello@own . example',
  'hello@own.example.',
  'hel.lo@own.example',
  'jörg@own.example',
  'hello@öwn.example',
  'hello@own.example, ceo@bank.example',
  'hello@[127.0.0.1]',
  'hello@own．example',
  'hello＠own.example',
  'ceo@bank.example@own.example',
  'ceo%bank.example@own.example',
  '@bank.example:hello@own.example',
  'hello@own.example(a\\)b)',
  'hello@own.example(a(b)c)',
  'hello\u3000x@own.example',
  'hello@own.exam\u00adple',
  '=?utf-8?q?ceo=40bank.example?=@own.example',
  'hello@=?utf-8?q?bank?=.example',
  '"hello"."x"@own.example',
  'hello@own.example\\',
  "o'hello@own.example",
]
const names = [
  'Shop',
  'Ann B.',
  'J. R. "Bob" Dobbs',
  '"Lee, Ann"',
  '"Ann \\"x\\" Lee"',
  '"a\\\\"',
  `"${bank}"`,
  `"<${bank}>"`,
  `"\\" <${bank}>, \\""`,
  bank,
  own,
  `${bank},`,
  `${bank};`,
  `g:${bank};`,
  'g:',
  'undisclosed:;',
  'Jörg',
  '会社',
  'Shop, Inc.',
  '[Shop]',
  "'x'",
  '.x',
  '"unclosed',
  `"x" <${bank}>`,
  `<${bank}>`,
  '<>',
  '""',
  '"',
  '\\"',
  '\\',
]
const words = [
  '=?utf-8?q?J=C3=B6rg?=',
  '=?utf-8?B?SsO2cmc=?=',
  '=?utf-8?q?=3Cceo=40bank.example=3E?=',
  '=?utf-8?q?ceo=40bank.example?=',
  '=?utf-8?q?ceo@bank.example?=',
  '=?utf-8?q?a,b?=',
  '=?utf-8?q?"?=',
  '=?utf-8?q?(?=',
  '=?utf-8?q?)?=',
  '=?utf-8?q?<?=',
  '=?utf-8?q?',
  '?=',
  '=?utf-8?q?x',
  '=?utf-8?Q?=00?=',
  '=?utf-8?q?=0D=0AFrom:_ceo=40bank.example?=',
  '=?utf-7?q?+ADw-ceo+AEA-bank.example+AD4-?=',
  '=?x?q?y?=',
  '=?utf-8?B?PGNlb0BiYW5rLmV4YW1wbGU+?=',
  '=?iso-2022-jp?B?GyRCJDMbKEI=?=',
  '=?utf-8?q?=zz?=',
  '=?utf-8*en?q?x?=',
  '"=?utf-8?q?J=C3=B6?="',
  '"=?utf-8?q?"',
  '"=?utf-8?q?=22?="',
]
const comments = [
  '(Shop)',
  '(a (b) c)',
  '((((((((((x))))))))))',
  '(',
  ')',
  `(${bank})`,
  `(<${bank}>)`,
  `(a (b) ${bank})`,
  '(a\\)b)',
  `(a\\) ${bank}`,
  '(a, b)',
  '(")',
  '(a (") b',
  '()',
  '(=?utf-8?q?ceo=40bank.example?=)',
  '(x;y)',
  '(g:)',
  '(\\',
  '(a (b))',
]
const joints = [
  '',
  ' ',
  '  ',
  '\t',
  '\r\n ',
  '\r\n\t',
  ',',
  ';',
  ':',
  '<',
  '>',
  '"',
  '.',
  '@',
  '\\',
  '(',
  ')',
  '\0',
  '\u0085',
  '\u2028',
  '\u00a0',
  '\u200b',
  '\u202e',
  '＜',
  '＞',
  '，',
  '\ufffd',
  '[',
  ']',
  '=?',
  '?=',
  '\r',
  '\n',
  '\v',
]

export function fromFields(seed: number, count: number): string[] {
  const random = randomFrom(seed)
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)] as string
  const gap = () => (random() < 0.85 ? pick([' ', '', ' ', '\r\n ']) : pick(joints))
  const piece = () => pick([names, names, words, comments][Math.floor(random() * 4)] as string[])
  const some = (maximum: number) => Array.from({ length: Math.floor(random() * (maximum + 1)) }, () => `${piece()}${gap()}`).join('')
  const address = () => (random() < 0.6 ? own : pick(addresses))
  const inBrackets = () => `<${random() < 0.9 ? '' : gap()}${address()}${random() < 0.9 ? '' : pick(comments)}>`
  const mutated = (text: string): string => {
    const at = Math.floor(random() * (text.length + 1))
    const kind = Math.floor(random() * 4)
    if (kind === 0) return text.slice(0, at) + text.slice(at + 1)
    if (kind === 1) return text.slice(0, at) + pick(joints) + text.slice(at)
    if (kind === 2) return text.slice(0, at) + pick([bank, pick(words), pick(comments), own]) + text.slice(at)
    const to = Math.floor(random() * (text.length + 1))
    return text.slice(0, at) + text.slice(at, to) + text.slice(Math.min(at, to))
  }
  return Array.from({ length: count }, () => {
    const isBare = random() < 0.25
    let text = `${some(isBare ? 1 : 3)}${isBare ? address() : inBrackets()}${random() < 0.6 ? '' : gap()}${random() < 0.7 ? '' : some(2)}`
    for (let times = Math.floor(random() * 3); times > 0; times--) if (random() < 0.5) text = mutated(text)
    return text
  })
}

const flat = (parsed: readonly Parsed[]): string[] =>
  parsed.flatMap(({ address, group }) => (group ? flat(group) : address ? [address] : []))

/** The addresses that each reader in this process finds in a field, unfolded as the readers get it. */
export const readers: Record<string, (field: string) => string[]> = {
  'postal-mime': (field) => flat(postalMimeParser(unfolded(field))),
  mailauth: (field) => flat(mailauthParser(field.trim())),
  nodemailer: (field) => flat(nodemailerParser(unfolded(field))),
  'the first in angle brackets': (field) => {
    const found = /<([^<>]*@[^<>]*)>/.exec(unfolded(field))?.[1]
    return found === undefined ? [] : [found]
  },
}
const unfolded = (field: string) => field.replace(/\r\n(?=[ \t])/g, '')

/** Compares addresses independently of a reader's form of quotes, case and non-ASCII letters. */
export const isSame = (read: string, held: string): boolean => plain(read) === plain(held)

function plain(address: string): string {
  const at = address.lastIndexOf('@')
  const host = address.slice(at + 1).trim()
  let domain = host
  try {
    domain = /^[!-~]*$/.test(host) ? host : new URL(`http://${host}`).hostname
  } catch {}
  return `${address
    .slice(0, at)
    .trim()
    .replace(/^"(.*)"$/, '$1')}@${domain.toLowerCase()}`
}
