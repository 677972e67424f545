/** One DNS record of a domain: the required value, the state at the last check, and the values found. */
import type { ReactNode } from 'react'
import type { DnsRecord } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge } from './basic-components.tsx'
import { DnsRecordLines } from './dns-value.tsx'
import { DownIcon } from './icons.tsx'
import { QuietState } from './quiet-state.tsx'
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
  /** A row of a box of records, which opens. One that verification still needs is open. */
  isRow?: boolean
}

export function OneRecord({ title, record, zone, advice, aside, hasFullName = true, isRow = false }: OneRecordProps) {
  const heading = <RecordTitle title={title} record={record} advice={advice} isRow={isRow} aside={aside} />
  const content = (
    <>
      {advice && <p className="mb-2 text-xs text-soft">{advice}</p>}
      <DnsRecordLines record={record} zone={zone} hasFullName={hasFullName} />
      <Found record={record} advice={advice} />
    </>
  )
  if (isRow) {
    return (
      <section aria-label={title}>
        <details className="group" open={record.status !== 'OK' && advice === undefined}>
          <summary className="flex items-center gap-2 px-4 py-2.5">
            <DownIcon size={14} className="shrink-0 -rotate-90 text-soft group-open:rotate-0" />
            {heading}
          </summary>
          <div className="px-4 pb-4 md:pl-10">{content}</div>
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

function RecordTitle({ title, record, advice, isRow, aside }: Pick<OneRecordProps, 'title' | 'record' | 'advice' | 'isRow' | 'aside'>) {
  const tone = record.status === null || advice !== undefined ? 'none' : 'wait'
  return (
    <div className={`flex min-w-0 grow items-center gap-2 ${isRow ? '' : 'flex-wrap'}`}>
      <h3 className="shrink-0 text-sm font-semibold max-md:shrink [overflow-wrap:anywhere]">{title}</h3>
      <span className="font-mono text-xs text-soft">{record.type}</span>
      {isRow && advice !== undefined && record.status !== 'OK' && (
        <span className="min-w-0 truncate text-xs text-soft group-open:hidden max-lg:hidden">{advice}</span>
      )}
      <span className="ml-auto flex items-center gap-2">
        {record.status === 'OK' ? (
          <QuietState>{texts.dns.found}</QuietState>
        ) : (
          <Badge tone={tone}>{record.status ?? texts.dns.notChecked}</Badge>
        )}
        {aside}
      </span>
    </div>
  )
}

/** The problem of the record, and the values that DNS has instead. Of a missing record the badge says as much. */
function Found({ record, advice }: { record: DnsRecord; advice: string | undefined }) {
  if (record.status === 'Missing' && record.found.length === 0) return null
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
