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
])('an address is found in %s', (text) => {
  expect(new RegExp(mentionPattern('ann@x.test')).test(text)).toBe(true)
})

test.each(['joann@x.test', 'jo.ann@x.test', 'jo+ann@x.test', 'ann@x.test.example', 'ann@x.testing', 'ann@x-test'])(
  'an address is not a part of %s',
  (text) => {
    expect(new RegExp(mentionPattern('ann@x.test')).test(text)).toBe(false)
  },
)
