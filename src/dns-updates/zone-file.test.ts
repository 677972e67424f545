import { expect, test } from 'vitest'
import { zoneFile } from './zone-file.ts'

test('a zone file has names relative to its origin, long texts in pieces, and comments for records that cannot be imported', () => {
  const long = 'a'.repeat(300)
  expect(
    zoneFile('host.example', [
      { type: 'A', name: 'host.example', value: '203.0.113.9' },
      { type: 'MX', name: 'rp.Host.example', value: '10 host.example' },
      { type: 'CNAME', name: 'track.host.example', value: 'elsewhere.example.net' },
      { type: 'TXT', name: 'x.host.example', value: `v="1\\2;${long}` },
      { type: 'TXT', name: 'other.example', value: 'a\nb' },
      { type: 'PTR', name: '9.113.0.203.in-addr.arpa', value: 'host.example' },
      { type: 'A', name: 'host.example', value: '<the public IPv4 address of this server>' },
    ]).split('\n'),
  ).toEqual([
    '$ORIGIN host.example.',
    '@ 3600 IN A 203.0.113.9',
    'rp 3600 IN MX 10 @',
    'track 3600 IN CNAME elsewhere.example.net.',
    `x 3600 IN TXT "v=\\"1\\\\2;${'a'.repeat(248)}" "${'a'.repeat(52)}"`,
    'other.example. 3600 IN TXT "a\\010b"',
    '; at the provider of the address: 9.113.0.203.in-addr.arpa. 3600 IN PTR @',
    '; the value is not known yet: @ 3600 IN A <the public IPv4 address of this server>',
    '',
  ])
})
