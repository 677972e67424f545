import { expect, test } from 'vitest'
import { mentionPattern } from './mention-pattern.ts'

test.each([
  'ann@x.test',
  '"to":["ann@x.test"]',
  'to=ann@x.test&b=1',
  "no mailbox 'ann@x.test'.",
  'Mail for ann@x.test. was refused',
  String.raw`"output":"550\r\nann@x.test\n"`,
  String.raw`\u003cann@x.test\u003e`,
  '%20%3cann@x.test%3e',
  '%2cann@x.test',
  'mailto:%20ann@x.test',
  '=3cann@x.test=3e',
  '_ann@x.test_',
  'mail to +ann@x.test',
  'see...ann@x.test',
])('an address is found in %s', (text) => {
  expect(new RegExp(mentionPattern('ann@x.test')).test(text)).toBe(true)
})

test.each([
  'joann@x.test',
  'to=deann@x.test',
  'jo.ann@x.test',
  'jo+ann@x.test',
  'jo%2bann@x.test',
  'jo_ann@x.test',
  'jo._ann@x.test',
  'ann@x.test.example',
  'ann@x.testing',
  'ann@x-test',
])('an address is not a part of %s', (text) => {
  expect(new RegExp(mentionPattern('ann@x.test')).test(text)).toBe(false)
})
