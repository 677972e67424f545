/**
 * The data files in rules/: a mistake is refused, and the error names the file and the rule.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseHints } from './hints.ts'
import { parseRules, readSynonyms } from './reply-rules.ts'
import { parseRuleFile } from './rule-files.ts'
import { parseWordings } from './wordings.ts'

const rule = { id: 'a-rule', classification: 'no_mailbox', fault: 'recipient', text: ['(user|mailbox) .. {gone}'] }
const synonyms = readSynonyms(parseRuleFile('synonyms.json', JSON.stringify({ synonyms: [{ id: 'gone', words: ['unknown|not found'] }] })))
const parse = (...rules: object[]) =>
  parseRules([parseRuleFile('a.json', JSON.stringify({ about: 'x', groups: [{ about: 'y', rules }] }))], synonyms)

test('a rule with text, codes and marks is read', () => {
  expect(parse({ ...rule, codes: [550], marks: ['x'], subjects: ['7.*'], replies: 'permanent' })).toMatchObject([
    { classification: 'no_mailbox', fault: 'recipient', codes: [550], marks: ['x'], subjects: ['7.*'], replies: 'permanent' },
  ])
  const [first, second] = parse(rule, { ...rule, id: 'another', text: undefined, textOf: 'a-rule' })
  expect(second?.text).toBe(first?.text)
})

test.each<[string, object, string]>([
  ['an unknown classification', { classification: 'gone_fishing' }, 'unknown classification "gone_fishing"'],
  ['an unknown fault', { fault: 'nature' }, 'unknown fault "nature"'],
  ['a misspelled field', { subject: ['7.1'] }, 'unknown field "subject"'],
  ['no condition', { text: undefined }, 'no condition: one of marks, text, textOf, subjects, codes, replies'],
  ['a mark in capitals', { marks: ['GSMTP'] }, 'invalid value "GSMTP" in "marks"'],
  ['an enhanced code with its class', { subjects: ['5.1.1'] }, 'invalid value "5.1.1" in "subjects"'],
  ['a reply code as text', { codes: ['550'] }, '"codes" is not a list of reply codes from 400 to 599'],
  ['another kind of reply', { replies: 'both' }, 'unknown replies "both"'],
  ['an empty list', { text: [] }, '"text" is not a list of strings'],
  ['the text of no rule', { text: undefined, textOf: 'none' }, 'no earlier rule "none" with a text'],
  ['two texts', { textOf: 'a-rule' }, '"text" and "textOf" exclude each other'],
  ['an open bracket', { text: ['(user'] }, 'invalid pattern "(user": brackets or bars do not match'],
  ['a synonym in a choice', { text: ['(user|{gone})'] }, 'invalid pattern "(user|{gone})": brackets or bars do not match'],
  ['unknown synonyms', { text: ['user {lost}'] }, 'invalid pattern "user {lost}": no synonyms are named {lost}'],
  ['an empty choice', { text: ['(user|) x'] }, 'invalid pattern "(user|) x": a choice is empty'],
  ['an optional first word', { text: ['[user] x'] }, 'invalid pattern "[user] x": a pattern begins with a word that must be present'],
  ['one letter before a star', { text: ['u* x'] }, 'invalid pattern "u* x": fewer than 2 letters before the star: u*'],
  [
    'a slow pattern',
    { text: ['user .. user .. user .. x'] },
    'invalid pattern "user .. user .. user .. x": 343 ways to match from one word, at most 64: use fewer "..", "~" and "[…]"',
  ],
  [
    'phrases that begin alike',
    { text: ['(a|a b|a b c) (a|a b|a b c) (a|a b|a b c) (a|a b|a b c)'] },
    'invalid pattern "(a|a b|a b c) (a|a b|a b c) (a|a b|a b c) (a|a b|a b c)": 81 ways to match from one word, at most 64: use fewer "..", "~" and "[…]"',
  ],
])('%s is refused', (_, change, reason) => {
  expect(() => parse({ ...rule, ...change })).toThrow(new Error(`src/bounces/rules/a.json, "a-rule": ${reason}`))
})

test('a missing or duplicate id and invalid JSON are refused', () => {
  expect(() => parse(rule, rule)).toThrow(new Error('src/bounces/rules/a.json: duplicate id "a-rule"'))
  expect(() => parse({ ...rule, id: undefined })).toThrow(new Error('src/bounces/rules/a.json: invalid id undefined'))
  expect(() => parse({ ...rule, id: 'A rule' })).toThrow(new Error('src/bounces/rules/a.json: invalid id "A rule"'))
  expect(() => parseRuleFile('a.json', '{')).toThrow(/^src\/bounces\/rules\/a\.json: /)
  expect(() => parseRuleFile('a.json', '[]')).toThrow(new Error('src/bounces/rules/a.json: contains a value that is not an object'))
})

test('a phrase that no text contains is refused', () => {
  const lists = [{ id: 'a-list', phrases: ['not found | Not Known'] }]
  expect(() => parseWordings(parseRuleFile('wordings.json', JSON.stringify({ lists })))).toThrow(
    new Error('src/bounces/rules/wordings.json, "a-list": the phrase "Not Known" is never found; write "not known"'),
  )
  const hint = { id: 'a-hint', classification: 'dns_error', fault: 'server', phrases: ['no mx |'] }
  const hintsOf = (change: object) =>
    parseHints(parseRuleFile('hints.json', JSON.stringify({ corrections: [{ ...hint, ...change }], hints: [hint] })))
  expect(() => hintsOf({})).toThrow(new Error('src/bounces/rules/hints.json, "a-hint": an empty phrase in "phrases"'))
  expect(() => hintsOf({ phrases: ['x'], beside: 'y' })).toThrow(new Error('src/bounces/rules/hints.json, "a-hint": unknown beside "y"'))
})

test('every file in rules/ is read', () => {
  const folder = join(process.cwd(), 'src/bounces')
  const { files } = JSON.parse(readFileSync(join(folder, 'rules/order.json'), 'utf8')) as { files: string[] }
  const code = readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n')
  const isRead = (name: string) => files.includes(name) || code.includes(`readRuleFile('${name}')`)
  expect(readdirSync(join(folder, 'rules')).filter((name) => !isRead(name))).toEqual([])
})
