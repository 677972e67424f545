/**
 * Normalises the words of a reply for the rules: removes addresses, hosts, numbers, links, case, accents and line ends, which differ from
 * one reply to the next. Limited, and linear in the length of the text.
 */
import { checkFields, type Entry, readRuleFile, textsOf } from './rule-files.ts'

const plainLetters: Readonly<Record<string, string>> = { ı: 'i', ł: 'l', ø: 'o', ß: 'ss' }

/** Removes case and accents; separates the letters of scripts without spaces. */
export const fold = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[ıłøß]/g, (letter) => plainLetters[letter] ?? letter)
    .replace(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu, ' $& ')

function listsIn(file: Entry): ReadonlySet<string> {
  checkFields(file, ['words'])
  return new Set(textsOf(file, 'words').flatMap((line) => line.split(' ')))
}

/** Names of block lists in a link or host; other links and hosts are removed. */
const lists = listsIn(readRuleFile('block-lists.json'))
const listIn = (link: string): string =>
  link
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .some((part) => lists.has(part))
    ? ' dnsbl '
    : ' '

/** A reply of 2 KB in any language has fewer words; text that folding lengthens (one Arabic sign becomes 18 characters) is cut here. */
const maxWords = 250
const maxWordLength = 40
const maxFolded = 3000

/** Provider codes with a colon: RTR:BL of AOL, DT:SPM of NetEase. */
const codeWithColon = /^[a-z]{2,5}:[a-z]{1,3}\d?$/

/**
 * Lower-case words, a single full stop between sentences, `#` for text without letters. `text` is all lines of the reply, with or without
 * the codes before them.
 */
export function wordsOf(text: string): string[] {
  const plain = text
    // Cisco's and Amazon's bounces put their own words before the quoted reply.
    .replace(/\b(?:Unknown address error|Other mail system problem|Delivery expired)(?= [45]\d\d-)/gi, ' ')
    .replace(/(^|\s)[2-5]\d\d(?:-|[ \t]|$)/gm, '$1 ')
    // Cisco's appliances write `550 #5.1.0 Address rejected`, qmail ends with `(#5.7.1)`.
    .replace(/(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?!\.?\d)/g, ' ')
    // Addresses such as no-such-user@ and dmarc@ are no evidence.
    .replace(/(?<![^\s<>:;,()[\]"=])[^\s<>:;,()[\]"=]{0,320}@[^\s<>:;,()[\]"]{0,255}/g, ' ')
    .replace(/\b(?:https?:\/\/|www\.)[^\s<>"]{1,500}/gi, listIn)
    // "rejected.Please" ends a sentence, mx.example.org is a host; Exchange names its components like hosts.
    .replace(/([a-z\d)])\.(?=[A-Z][a-z])/g, '$1. ')
    .replace(/\b(RESOLVER|STOREDRV|ROUTING|QUEUE|SMTPSEND|TRANSPORT|AGENT|RST|ADR)\./gi, '$1 ')
    .replace(/(?<![\w.-])(?:[\w-]{1,63}\.){1,10}[a-z][\w-]{1,62}(?![\w-])/gi, listIn)
  return fold(plain)
    .slice(0, maxFolded)
    .replace(/(\w)n['’]t\b/g, (_, letter: string) => (letter === 'a' ? 'an not' : `${letter} not`))
    .replace(/\b(?:ca|can) ?not\b/g, 'can not')
    .replace(/['’]s\b/g, '')
    .replace(/['’]/g, ' ')
    .replace(/(?<![.;!?])[.;!?]+(?![^\s"')\]])/g, ' . ')
    .replace(/(?<=\S)\.(?=\S)/g, ' ')
    .replace(/[^\p{L}\p{N}_:.]+/gu, ' ')
    .replaceAll(' e mail', ' email')
    .replaceAll(' mail box', ' mailbox')
    .split(' ')
    .flatMap((word) => (word.includes(':') && !codeWithColon.test(word) ? word.split(':') : [word]))
    .flatMap((word) => (word.includes('_') && !/\d/.test(word) ? word.split('_') : [word]))
    .filter((word) => word !== '')
    .slice(0, maxWords)
    .map((word) => (word === '.' || /\p{L}/u.test(word) ? word.slice(0, maxWordLength) : '#'))
}
