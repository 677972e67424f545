/** The DNS records of a sending domain: those that it needs, those that help, and all of them as a zone file. */
import { type ReactNode, useState } from 'react'
import { save } from '../api-client.ts'
import type { DnsRecord, Domain } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Button, Section } from './basic-components.tsx'
import { OneRecord } from './dns-record.tsx'
import { Copy } from './time-and-copy.tsx'

const words = texts.domains

/** Without these, the domain is not verified. */
const required = ['spf', 'dkim', 'returnPath'] as const
const recommended = ['dkimEd25519', 'dmarc', 'receiving', 'mx'] as const
export const requiredOf = ({ dnsRecords }: Domain) => required.flatMap((name) => dnsRecords[name] ?? [])
export const foundOf = (domain: Domain) => requiredOf(domain).filter(({ status }) => status === 'OK').length

const ttlSeconds = 3600
/** The longest string of a TXT record (RFC 1035, 3.3.14). */
const maxTextOctets = 255

/** The record in the form of a zone file (RFC 1035, 5.1). */
function zoneLine({ fullName, type, value }: DnsRecord): string {
  const texts = value.match(new RegExp(`.{1,${maxTextOctets}}`, 'g')) ?? []
  const mx = /^\d+ /.test(value) ? value : `10 ${value}`
  const data =
    type === 'TXT'
      ? texts.map((part) => `"${part.replaceAll('"', '\\"')}"`).join(' ')
      : `${(type === 'MX' ? mx : value).replace(/\.$/, '')}.`
  return `${fullName}. ${ttlSeconds} IN ${type} ${data}`
}

/** All records at once, for a DNS hoster that imports zone files. The MX record is left out: its value is an example. */
export function ZoneFile({ domain: { name, dnsRecords } }: { domain: Domain }) {
  const records = Object.keys(words.records)
    .filter((key) => key !== 'mx')
    .flatMap((key) => dnsRecords[key as keyof typeof words.records] ?? [])
  const text = `${records.map(zoneLine).join('\n')}\n`
  return (
    <div className="flex flex-wrap gap-2">
      <Copy text={text} label={words.copyAll} />
      <Button onClick={() => save(`${name}.zone`, new Blob([text], { type: 'text/plain' }))}>{words.zoneFile}</Button>
    </div>
  )
}

export function Records({ of: domain }: { of: Domain }) {
  const [hasFullNames, setFullNames] = useState(false)
  return (
    <>
      <RecordGroup
        title={words.required}
        names={required}
        of={domain}
        hasFullNames={hasFullNames}
        aside={
          <Button small kind="quiet" onClick={() => setFullNames(!hasFullNames)}>
            {hasFullNames ? words.hideNames : words.showNames}
          </Button>
        }
      />
      <RecordGroup title={words.recommended} names={recommended} of={domain} hasFullNames={hasFullNames} />
    </>
  )
}

interface GroupProps {
  title: string
  names: readonly (keyof typeof words.records)[]
  of: Domain
  hasFullNames: boolean
  aside?: ReactNode
}

function RecordGroup({ title, names, of: { dnsRecords }, hasFullNames, aside }: GroupProps) {
  return (
    <Section title={title} aside={aside}>
      <div className="divide-y divide-line rounded-lg border border-line">
        {names.map((name) => {
          // The record for mail in takes the place of the example.
          const record = name === 'mx' && dnsRecords.receiving ? undefined : dnsRecords[name]
          if (!record) return null
          const advice = words.advice[name as keyof typeof words.advice]
          // Another state is another element, so that a record that is no longer found opens.
          return (
            <OneRecord
              key={`${name} ${record.status}`}
              title={words.records[name]}
              record={record}
              zone={dnsRecords.zone}
              advice={advice}
              hasFullName={hasFullNames}
              isRow
            />
          )
        })}
      </div>
    </Section>
  )
}
