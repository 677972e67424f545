import { expect, test } from 'vitest'
import { systemClock } from '#base'
import { checkDomain } from './verify-records.ts'

const facts = {
  selector: 's',
  rsaPublic: 'AA',
  ed25519Public: 'AA',
  spfStatus: null,
  dkimStatus: null,
  dkimEd25519Status: null,
  returnPathStatus: null,
}

test.each([
  ['mail.shop.myshopify.com', '_dmarc.shop.myshopify.com', 'OK'],
  ['mail.shop.myshopify.com', '_dmarc.myshopify.com', 'Missing'],
  ['mail.shop.example', '_dmarc.shop.example', 'OK'],
  ['shop.co.uk', '_dmarc.co.uk', 'Missing'],
])('%s with a record at %s has the DMARC status %s: private suffixes divide organisations, as at receivers', async (name, at, status) => {
  const none = { kind: 'none' } as const
  const { dmarc } = await checkDomain(
    { name, ...facts },
    {
      resolver: {
        txt: async (asked) => (asked === at ? { kind: 'found', value: ['v=DMARC1; p=reject'] } : none),
        cname: async () => none,
        mx: async () => none,
      },
      clock: systemClock,
      hostname: 'mail.example.com',
    },
  )
  expect(dmarc.status).toBe(status)
})
