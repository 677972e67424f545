/** One DNS record of a domain: the required value, the state at the last check, and the values found. */
import type { ReactNode } from 'react'
import type { DnsRecord } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge } from './basic-components.tsx'
import { DnsRecordLines } from './dns-value.tsx'
import { DownIcon } from './icons.tsx'
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
  /** Below the name in the zone. */
  hasFullName?: boolean
  /** A record that is found is one line, which opens. */
  isFolded?: boolean
}

export function OneRecord({ title, record, zone, advice, aside, hasFullName = true, isFolded = false }: OneRecordProps) {
  const heading = <RecordTitle title={title} record={record} isAdvice={advice !== undefined} aside={aside} />
  const content = (
    <>
      {advice && <p className="mb-2 text-xs text-soft">{advice}</p>}
      <DnsRecordLines record={record} zone={zone} hasFullName={hasFullName} />
      <Found record={record} advice={advice} />
    </>
  )
  if (isFolded && record.status === 'OK') {
    return (
      <section aria-label={title} className="rounded-lg border border-line">
        <details className="group">
          <summary className="flex items-center gap-2 px-4 py-2.5">
            <DownIcon size={14} className="shrink-0 -rotate-90 text-soft group-open:rotate-0" />
            {heading}
          </summary>
          <div className="px-4 pb-4">{content}</div>
        </details>
      </section>
    )
  }
  return (
    <section aria-label={title} className="rounded-lg border border-line p-4">
      <div className="mb-2">{heading}</div>
      {content}
    </section>
  )
}

function RecordTitle({ title, record, isAdvice, aside }: { title: string; record: DnsRecord; isAdvice: boolean; aside: ReactNode }) {
  const tone = record.status === 'OK' ? 'good' : record.status === null || isAdvice ? 'none' : 'wait'
  return (
    <div className="flex grow flex-wrap items-center gap-2">
      <h3 className="text-base font-semibold [overflow-wrap:anywhere]">{title}</h3>
      <Badge tone="none">{record.type}</Badge>
      <Badge tone={tone}>{record.status ?? texts.dns.notChecked}</Badge>
      {aside && <span className="ml-auto">{aside}</span>}
    </div>
  )
}

/** The problem of the record, and the values that DNS has instead. Of a missing record the advice has already given the effect. */
function Found({ record, advice }: { record: DnsRecord; advice: string | undefined }) {
  if (advice !== undefined && record.status === 'Missing') return null
  return (
    <>
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
    </>
  )
}
