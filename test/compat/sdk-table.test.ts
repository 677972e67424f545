/** The list of served methods is complete, docs/vendor-sdks.md has it, and the table cannot count a method that was not driven. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { SdkCall } from '../support/sdk-calls.ts'
import { methodsText, type Report, rowsOf, rowText, upstreamVersion } from './sdk-table.ts'
import { refusingEndpoints, type ServedSdk, servedSdks } from './served-methods.ts'

const page = readFileSync('docs/vendor-sdks.md', 'utf8')

test('every endpoint of a vendor is called by a method of an SDK, and every method calls an endpoint that exists', () => {
  const served = new Set([...servedSdks].flatMap(({ api }) => api.endpoints.map(({ name }) => name)))
  const called = new Set(
    servedSdks.flatMap(({ api, methods }) => Object.values(methods).flatMap((names) => names.map((one) => `${api.name}.${one}`))),
  )
  expect([...served].filter((name) => !called.has(name) && !refusingEndpoints.has(name))).toEqual([])
  expect([...called, ...refusingEndpoints].filter((name) => !served.has(name))).toEqual([])
})

test('the page has every method, and the versions that are installed', () => {
  for (const sdk of servedSdks) {
    expect(page).toContain(methodsText(sdk))
    const count = Object.keys(sdk.methods).length
    const row = { sdk, version: '1', served: count, driven: count, passed: count, faults: [] }
    if (sdk.from === 'debian') expect(page).toContain(rowText(row).replace(/^.*Debian/, 'Debian'))
    else
      expect(page).toContain(
        rowText({ ...row, version: JSON.parse(readFileSync(`node_modules/${sdk.name}/package.json`, 'utf8')).version }),
      )
  }
})

const [first] = servedSdks
const sdk: ServedSdk = { ...(first as ServedSdk), name: 'some-sdk', methods: { send: [], list: [] } }
const call = (method: string, end: SdkCall['end'], name = sdk.name) => ({ sdk: name, method, end })
const report = (...tests: [status: string, calls: SdkCall[]][]): Report => ({
  testResults: [
    { assertionResults: tests.map(([status, sdkCalls], index) => ({ status, fullName: `test ${index}`, meta: { sdkCalls } })) },
  ],
})
const judge = (...reports: Report[]) => {
  const [row] = rowsOf([sdk], reports, () => '1.0.0')
  return { driven: row?.driven, passed: row?.passed, faults: row?.faults }
}
const send = [call('send', 'answered'), call('send', 'refused')]

test('a method counts when tests had its answer and its refusal, also in two reports', () => {
  const list = [report(['passed', [call('list', 'answered')]]), report(['passed', [call('list', 'refused')]])]
  expect(judge(report(['passed', send]), ...list)).toEqual({ driven: 2, passed: 2, faults: [] })
})

test('a method without an answer, without a refusal, or of another SDK does not count', () => {
  for (const [calls, end] of [
    [[call('list', 'refused')], 'answered'],
    [[call('list', 'answered')], 'refused'],
  ] as const)
    expect(judge(report(['passed', [...send, ...calls]]))).toEqual({
      driven: 1,
      passed: 1,
      faults: [`some-sdk: list was not ${end} in any test`],
    })
  const others = [call('list', 'answered', 'other'), call('list', 'refused', 'other')]
  expect(judge(report(['passed', [...send, ...others]]))).toMatchObject({ driven: 1, faults: { length: 2 } })
})

test('a method whose test failed has not passed', () => {
  const list = [call('list', 'answered'), call('list', 'refused')]
  expect(judge(report(['passed', [...send, ...list]], ['failed', [call('list', 'answered')]]))).toEqual({
    driven: 2,
    passed: 1,
    faults: ['some-sdk: list is called in a failed test: test 1'],
  })
})

test('the revision of Debian is not a part of the version', () => {
  expect(['5.4.53+dfsg-0+deb12u1', '1:2.9.19-1', '9.0-1', '1.22.0~rc1-2'].map(upstreamVersion)).toEqual([
    '5.4.53',
    '2.9.19',
    '9.0',
    '1.22.0',
  ])
})
