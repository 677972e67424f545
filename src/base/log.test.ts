/** Log lines: JSON for programs, text for a person, and in both no secrets. */
import { Writable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openLog } from './log.ts'

function logTo(isTTY: boolean, logFormat?: 'json' | 'text') {
  const written: string[] = []
  const stream = new Writable({
    write(text, _encoding, done) {
      written.push(String(text))
      done()
    },
  })
  const log = openLog({ logLevel: 'info', logFormat }, 'serve', Object.assign(stream, { isTTY }))
  return { log, written }
}

// As node:util has it: no colours in the output of a test, which is not a terminal with colours.
const withoutColours = (text: string | undefined) => (text ?? '').replace(/\u001b\[\d+m/g, '')
const escapes = /\u001b/

describe('the form of the lines', () => {
  test('is text on a terminal, and JSON elsewhere', () => {
    const terminal = logTo(true)
    terminal.log.warn({ port: 25, name: 'two words' }, 'a port is taken')
    expect(withoutColours(terminal.written[0])).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3}Z warn {2}serve: a port is taken {2}port=25 name="two words"\n$/,
    )
    const file = logTo(false)
    file.log.warn({ port: 25 }, 'a port is taken')
    expect(JSON.parse(file.written[0] ?? '')).toMatchObject({ level: 40, role: 'serve', port: 25, msg: 'a port is taken' })
  })

  test('follows the setting: text without colours in a file, JSON on a terminal', () => {
    const file = logTo(false, 'text')
    file.log.info('started')
    expect(file.written[0]).toMatch(/Z info {2}serve: started\n$/)
    expect(file.written[0]).not.toMatch(escapes)
    const terminal = logTo(true, 'json')
    terminal.log.info('started')
    expect(JSON.parse(terminal.written[0] ?? '')).toMatchObject({ msg: 'started' })
  })
})

test('an error in text has its stack, one line each', () => {
  const { log, written } = logTo(false, 'text')
  log.error({ err: new Error('it broke') }, 'request failed')
  expect(written[0]).toMatch(/error serve: request failed\n {4}Error: it broke\n {4}at .*\n/)
})

test('no secret appears in either form', () => {
  for (const format of ['json', 'text'] as const) {
    const { log, written } = logTo(false, format)
    log.info({ key: 'hidden-1', authorization: 'hidden-2', settings: { secret: 'hidden-3', password: 'hidden-4' } }, 'read')
    expect(written.join('')).not.toContain('hidden-')
    expect(written.join('')).toContain('[Redacted]')
  }
})

test('text from outside stays on its line with any content', () => {
  const { log, written } = logTo(false, 'text')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), fc.jsonValue(), (message, name, value) => {
      written.length = 0
      log.info({ [`x${name}`]: value }, `m${message}`)
      expect(written).toHaveLength(1)
      expect(written[0]?.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
    }),
  )
})
