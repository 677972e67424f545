/**
 * The words of a reply, as rules look at them: whatever differs from one reply to the next (addresses, hosts, numbers, links, case,
 * accents, ends of lines) is gone. Bounded, and in time that grows with the length of the text only.
 */

const plainLetters: Readonly<Record<string, string>> = { ı: 'i', ł: 'l', ø: 'o', ß: 'ss' }

/** Letters without case and accents; scripts without spaces get one between any two letters. */
export const fold = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[ıłøß]/g, (letter) => plainLetters[letter] ?? letter)
    .replace(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu, ' $& ')

/** Names in a link or host that tell of a list of blocked senders; all other links and hosts say nothing. */
const lists = new Set(
  `spamhaus spamcop sorbs barracudacentral barracudanetworks cloudmark surbl uribl uceprotect senderscore senderbase talosintelligence
  dnsbl dnsrbl rbl rbls dnswl abusix abuseat invaluement spamrl hostkarma junkemailfilter mailspike njabl ahbl drbl rhsbl ipcheck
  blacklist blacklists blocklist blocklists blocklisted mxrate cobion trustedsource sendersupport spameatingmonkey psbl ivmsip`.split(
    /\s+/,
  ),
)
const listIn = (link: string): string =>
  link
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .some((part) => lists.has(part))
    ? ' dnsbl '
    : ' '

/** A reply of 2 KB in any language has fewer and shorter ones; what folding makes longer (one Arabic sign becomes 18) is cut here. */
const mostWords = 250
const longestWord = 40
const mostFolded = 3000

/** Codes that providers write with a colon in them: RTR:BL of AOL, DT:SPM of NetEase. */
const codeWithColon = /^[a-z]{2,5}:[a-z]{1,3}\d?$/

/**
 * Lower-case words, a lone full stop between sentences, `#` for what has no letters. `text` is all lines of the reply, with or without
 * the codes before them.
 */
export function wordsOf(text: string): string[] {
  const plain = text
    // Cisco's and Amazon's bounces put words of their own before the reply that they quote.
    .replace(/\b(?:Unknown address error|Other mail system problem|Delivery expired)(?= [45]\d\d-)/gi, ' ')
    .replace(/(^|\s)[2-5]\d\d(?:-|[ \t]|$)/gm, '$1 ')
    // Cisco's appliances write `550 #5.1.0 Address rejected`, qmail ends with `(#5.7.1)`.
    .replace(/(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?!\.?\d)/g, ' ')
    // no-such-user@ and dmarc@ say nothing.
    .replace(/(?<![^\s<>:;,()[\]"=])[^\s<>:;,()[\]"=]{0,320}@[^\s<>:;,()[\]"]{0,255}/g, ' ')
    .replace(/\b(?:https?:\/\/|www\.)[^\s<>"]{1,500}/gi, listIn)
    // "rejected.Please" is the end of a sentence, mx.example.org is a host; Exchange names its own parts like hosts.
    .replace(/([a-z\d)])\.(?=[A-Z][a-z])/g, '$1. ')
    .replace(/\b(RESOLVER|STOREDRV|ROUTING|QUEUE|SMTPSEND|TRANSPORT|AGENT|RST|ADR)\./gi, '$1 ')
    .replace(/(?<![\w.-])(?:[\w-]{1,63}\.){1,10}[a-z][\w-]{1,62}(?![\w-])/gi, listIn)
  return fold(plain)
    .slice(0, mostFolded)
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
    .slice(0, mostWords)
    .map((word) => (word === '.' || /\p{L}/u.test(word) ? word.slice(0, longestWord) : '#'))
}
