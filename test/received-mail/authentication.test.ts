/** SPF, DKIM and DMARC results of generated messages equal the way in which they were made, and those of another verifier. */
import { authenticate as mailauth } from 'mailauth'
import { beforeAll, expect, test } from 'vitest'
import { systemClock } from '#base'
import { signaturesOf } from '#dkim'
import { authenticate } from '../../src/received-mail/authenticate.ts'
import { authenticationSamples, type Samples, txtResolver } from '../support/authentication-samples.ts'

let made: Samples
beforeAll(async () => {
  made = await authenticationSamples(300)
})

const resultOf = async ({ octets, ...sample }: Samples['samples'][number]) => {
  const signatures = signaturesOf(octets, systemClock.nowMs())
  const { spf, dkim, dmarc } = await authenticate(
    { resolver: txtResolver(made.txt), clock: systemClock, hostname: 'house.test' },
    { ...sample, signatures },
  )
  return { spf: spf.result, dkim: dkim.map(({ result }) => result), dmarc: dmarc.result, policy: dmarc.policy }
}

test('the results are those that the messages were made for', async () => {
  for (const sample of made.samples) expect(await resultOf(sample), sample.octets.toString()).toEqual(sample.expected)
  const results = new Set(made.samples.map(({ expected }) => `${expected.spf} ${expected.dmarc}`))
  expect(results.size).toBeGreaterThan(8)
})

test("mailauth's own reading of the whole message gives the same", async () => {
  const resolver = async (name: string, type: string) => {
    const texts = type === 'TXT' ? made.txt.get(name.toLowerCase()) : undefined
    if (!texts) throw Object.assign(new Error(name), { code: 'ENOTFOUND' })
    return texts.map((text) => [text])
  }
  for (const sample of made.samples) {
    const { client: ip, greeting: helo, sender, octets } = sample
    const other = await mailauth(octets, { ip, helo, sender, mta: 'house.test', resolver, disableArc: true, disableBimi: true })
    const dmarc = other.dmarc || undefined
    const found = {
      spf: other.spf ? other.spf.status.result : 'none',
      dkim: (other.dkim?.results ?? [])
        .filter(({ signingDomain }) => signingDomain)
        // A body that differs from that of the signature.
        .map(({ status }) => (status.result === 'neutral' ? 'fail' : status.result)),
      dmarc: dmarc?.status.result,
      policy: dmarc?.policy ?? null,
    }
    expect(found, octets.toString()).toMatchObject({ ...sample.expected, policy: sample.expected.policy })
  }
})
