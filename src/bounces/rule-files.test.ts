/**
 * The data files in rules/: a mistake is refused, and the error gives the file, the line and the entry.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parsePhraseLists } from './phrases.ts'
import { parseRules, readSynonyms } from './reply-rules.ts'
import { parseHints } from './report-hints.ts'
import { parseRuleFile, readRuleFile } from './rule-files.ts'

/** `content` as a file with one value on each line. */
const fileOf = (content: object) => parseRuleFile('a.json', JSON.stringify(content, null, 2))

/** The id of the first rule of a file is on line 6, its classification on 7, its fault on 8, its text on 9 and 10. */
const rule = { id: 'a-rule', classification: 'no_mailbox', fault: 'recipient', text: ['(user|mailbox) .. {gone}'] }
const synonyms = readSynonyms(fileOf({ synonyms: [{ id: 'gone', words: ['unknown|not found'] }] }))
const parse = (...rules: object[]) => parseRules([fileOf({ groups: [{ rules }] })], synonyms)

test('a rule with text, codes and marks is read', () => {
  expect(parse({ ...rule, about: 'x', codes: [550], marks: ['x'], subjects: ['7.*'], replies: 'permanent' })).toMatchObject([
    { classification: 'no_mailbox', fault: 'recipient', codes: [550], marks: ['x'], subjects: ['7.*'], replies: 'permanent' },
  ])
  const [first, second] = parse(rule, { ...rule, id: 'another', text: undefined, textOf: 'a-rule' })
  expect(second?.text).toBe(first?.text)
})

test.each<[string, object, number, string]>([
  ['an unknown classification', { classification: 'gone_fishing' }, 7, 'unknown classification: "gone_fishing"'],
  ['an unknown fault', { fault: 'nature' }, 8, 'unknown fault: "nature"'],
  ['a missing fault', { fault: undefined }, 5, 'unknown fault: undefined'],
  ['a misspelled field', { subject: ['7.1'] }, 12, 'unknown field "subject"'],
  ['a comment that is not text', { about: 1 }, 12, '"about" is not a string'],
  ['no condition', { text: undefined }, 5, 'no condition: one of marks, text, textOf, subjects, codes, replies'],
  ['a mark in capitals', { marks: ['outlook', 'GSMTP'] }, 14, 'invalid value in "marks": "GSMTP"'],
  ['an enhanced code with its class', { subjects: ['5.1.1'] }, 13, 'invalid value in "subjects": "5.1.1"'],
  ['a reply code as text', { codes: ['550'] }, 12, '"codes" is not a list of reply codes from 400 to 599'],
  ['another kind of reply', { replies: 'both' }, 12, 'unknown replies: "both"'],
  ['an empty list', { text: [] }, 9, '"text" is not a list of strings'],
  ['a blank pattern', { text: ['user', ' '] }, 11, '"text" contains a value that is not text'],
  ['the text of no rule', { text: undefined, textOf: 'none' }, 9, 'no earlier rule with a text: "none"'],
  ['two texts', { textOf: 'a-rule' }, 12, '"text" and "textOf" exclude each other'],
  ['an open bracket', { text: ['(user'] }, 10, 'invalid pattern "(user": brackets or bars do not match'],
  ['a synonym in a choice', { text: ['(user|{gone})'] }, 10, 'invalid pattern "(user|{gone})": brackets or bars do not match'],
  ['unknown synonyms', { text: ['user', 'user {lost}'] }, 11, 'invalid pattern "user {lost}": no synonyms are named {lost}'],
  ['an empty choice', { text: ['(user|) x'] }, 10, 'invalid pattern "(user|) x": a choice is empty'],
  ['an optional first word', { text: ['[user] x'] }, 10, 'invalid pattern "[user] x": a pattern begins with a word that must be present'],
  ['one letter before a star', { text: ['u* x'] }, 10, 'invalid pattern "u* x": fewer than 2 letters before the star: u*'],
  [
    'a slow pattern',
    { text: ['user .. user .. user .. x'] },
    10,
    'invalid pattern "user .. user .. user .. x": 343 ways to match from one word, at most 64: use fewer "..", "~" and "[…]"',
  ],
  [
    'phrases that begin alike',
    { text: ['(a|a b|a b c) (a|a b|a b c) (a|a b|a b c) (a|a b|a b c)'] },
    10,
    'invalid pattern "(a|a b|a b c) (a|a b|a b c) (a|a b|a b c) (a|a b|a b c)": 81 ways to match from one word, at most 64: use fewer "..", "~" and "[…]"',
  ],
])('%s is refused', (_, change, line, problem) => {
  expect(() => parse({ ...rule, ...change })).toThrow(new Error(`src/bounces/rules/a.json:${line}: "a-rule": ${problem}`))
})

test('a missing or duplicate id is refused', () => {
  expect(() => parse(rule, rule)).toThrow(new Error('src/bounces/rules/a.json:14: duplicate id: "a-rule"'))
  expect(() => parse({ ...rule, id: undefined })).toThrow(new Error('src/bounces/rules/a.json:5: invalid id: undefined'))
  expect(() => parse({ ...rule, id: 'A rule' })).toThrow(new Error('src/bounces/rules/a.json:6: invalid id: "A rule"'))
})

test('invalid JSON is refused with its line', () => {
  expect(() => parseRuleFile('a.json', '{\n  "version": 4,\n  files: []\n}')).toThrow(/^src\/bounces\/rules\/a\.json:3: Expected/)
  expect(() => parseRuleFile('a.json', '{\n  "version":\n')).toThrow(/^src\/bounces\/rules\/a\.json:2: Unexpected end/)
  expect(() => parseRuleFile('a.json', '[]')).toThrow(new Error('src/bounces/rules/a.json:1: contains a value that is not an object'))
})

test('a mistake in a file as it is shipped is refused with its line', () => {
  const { name, text } = readRuleFile('providers.json').file
  const place = text.lastIndexOf('"classification": "') + '"classification": "'.length
  const line = text.slice(0, place).split('\n').length
  const changed = parseRuleFile(name, `${text.slice(0, place)}x${text.slice(place)}`)
  expect(line).toBeGreaterThan(100)
  expect(() => parseRules([changed], readSynonyms(readRuleFile('synonyms.json')))).toThrow(
    new RegExp(`^src/bounces/rules/providers\\.json:${line}: "[a-z0-9-]+": unknown classification: "x[a-z_]+"$`),
  )
})

test('a phrase that no text contains is refused', () => {
  const list = { id: 'a-list', phrases: ['unknown', 'not found | Not Known'] }
  expect(() => parsePhraseLists(fileOf({ lists: [list] }))).toThrow(
    new Error('src/bounces/rules/a.json:7: "a-list": the phrase "Not Known" is never found; write "not known"'),
  )
  const hint = { id: 'a-hint', classification: 'dns_error', fault: 'server', phrases: ['no mx |'] }
  const hintsOf = (change: object) => parseHints(fileOf({ corrections: [{ ...hint, ...change }], hints: [hint] }))
  expect(() => hintsOf({})).toThrow(new Error('src/bounces/rules/a.json:8: "a-hint": an empty phrase in "phrases"'))
  expect(() => hintsOf({ phrases: ['x'], beside: 'y' })).toThrow(new Error('src/bounces/rules/a.json:10: "a-hint": unknown beside: "y"'))
})

test('every file in rules/ is read', () => {
  const folder = new URL('./', import.meta.url)
  const { files } = readRuleFile('order.json').fields as { files: string[] }
  const code = readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8'))
    .join('\n')
  const isRead = (name: string) => files.includes(name) || code.includes(`readRuleFile('${name}')`)
  expect(readdirSync(new URL('rules/', folder)).filter((name) => !isRead(name))).toEqual([])
})
