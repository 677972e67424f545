/** One DNS record of a domain: the required value, the state at the last check, and the values found. */
import type { ReactNode } from 'react'
import type { DnsRecord } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge } from './basic-components.tsx'
import { DnsRecordLines } from './dns-value.tsx'
import { Code } from './time-and-copy.tsx'

/** "Publish this record: …", beside the record itself, repeats it. */
const onlyRepeats = ({ suggestion, value }: DnsRecord) => suggestion?.endsWith(`: ${value}`) ?? false

interface OneRecordProps {
  title: string
  record: DnsRecord
  zone: string
  /** For a record that is only recommended. */
  advice?: string | undefined
  /** Beside the title. */
  aside?: ReactNode
}

export function OneRecord({ title, record, zone, advice, aside }: OneRecordProps) {
  const tone = record.status === 'OK' ? 'good' : record.status === null || advice ? 'none' : 'wait'
  return (
    <section aria-label={title} className="rounded-lg border border-line p-4">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h3 className="text-base font-semibold [overflow-wrap:anywhere]">{title}</h3>
        <Badge tone="none">{record.type}</Badge>
        <Badge tone={tone}>{record.status ?? texts.dns.notChecked}</Badge>
        {aside && <span className="ml-auto">{aside}</span>}
      </div>
      {advice && <p className="mb-2 text-xs text-soft">{advice}</p>}
      <DnsRecordLines record={record} zone={zone} />
      {record.problem && <p className={`mt-3 text-sm ${advice ? 'text-soft' : 'text-bad'}`}>{record.problem}</p>}
      {record.suggestion && !onlyRepeats(record) && <p className="mt-1 text-sm">{record.suggestion}</p>}
      {record.found.length > 0 && record.status !== 'OK' && (
        <div className="mt-2 text-sm">
          <p className="text-soft">{texts.domains.found}</p>
          {record.found.map((value) => (
            <Code key={value}>{value}</Code>
          ))}
        </div>
      )}
    </section>
  )
}
