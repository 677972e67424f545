import { expect, test } from 'vitest'
import { MailgunRefusal } from './errors.ts'
import { RecipientVariables } from './recipient-variables.ts'

const values = new Map([
  ['', 'ann@north.example'],
  ['.name', 'Ann %recipient.city%'],
])

test('a value takes the place of its variable once, and a variable without a value stays', () => {
  expect(new RecipientVariables().applied('%recipient.name% of %recipient.city%: %recipient%', values)).toBe(
    'Ann %recipient.city% of %recipient.city%: ann@north.example',
  )
})

test('a text has at most 20,000 variables, however short they are', () => {
  const text = '%recipient%'.repeat(20_000)
  expect(new RecipientVariables().applied(text, values)).toHaveLength(20_000 * 'ann@north.example'.length)
  expect(() => new RecipientVariables().applied(`${text}%recipient%`, values)).toThrow(MailgunRefusal)
})
