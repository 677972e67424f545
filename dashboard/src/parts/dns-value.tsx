/** The parts of a DNS record, each on a line with a copy button. */
import { texts } from '../texts.ts'
import { Code, CopyIconButton } from './time-and-copy.tsx'

const words = texts.dns

interface ShownRecord {
  name: string
  fullName: string
  value: string
}

export const DnsRecordLines = ({ record, zone, hasFullName = true }: { record: ShownRecord; zone: string; hasFullName?: boolean }) => (
  <dl className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-2 gap-y-1 text-sm md:grid-cols-[9.5rem_minmax(0,1fr)_auto]">
    <Line name={words.nameIn(zone)} value={record.name} copy={words.copyName} />
    {hasFullName && <Line name={words.fullName} value={record.fullName} copy={words.copyFullName} />}
    <Line name={words.value} value={record.value} copy={words.copyValue} isShort={!hasFullName} />
  </dl>
)

/** `isShort`: a long value, such as a key, has one line, and is copied whole. */
const Line = ({ name, value, copy, isShort = false }: { name: string; value: string; copy: string; isShort?: boolean }) => (
  <>
    <dt className="col-span-2 text-xs text-soft md:col-span-1">{name}</dt>
    <dd className={`contents ${isShort ? '[&_code]:truncate' : ''}`}>
      <Code>{value}</Code>
      <CopyIconButton text={value} label={copy} />
    </dd>
  </>
)
