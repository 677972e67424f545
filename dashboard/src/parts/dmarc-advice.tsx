/** The next step for the DMARC policy of a domain, with its conditions, and a record to publish. */
import type { DomainsRetrieveDmarcData } from '../api-types.ts'
import { texts } from '../texts.ts'
import { CheckIcon, UnmetIcon } from './icons.tsx'
import { Code, CopyIconButton } from './time-and-copy.tsx'

const words = texts.dmarc
const policies = ['none', 'quarantine', 'reject'] as const

/** The task first: the next step of the policy with its conditions, and the record to publish. */
export const AdviceCard = ({ data: { advice, record } }: { data: DomainsRetrieveDmarcData }) => (
  <section aria-label={words.advice} className="mb-3 rounded-lg border border-line px-4 py-3 text-sm">
    <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
      <h2 className="text-base font-semibold">{advice.text}</h2>
      <ol aria-label={words.steps} className="flex flex-wrap items-center gap-1.5 text-xs text-soft">
        {advice.policy === null && <li className="font-medium text-wait">{words.unpublished}</li>}
        {policies.map((policy, index) => (
          <li key={policy} className="flex items-center gap-1.5">
            {(index > 0 || advice.policy === null) && <span aria-hidden="true">→</span>}
            <span className={policy === advice.policy ? 'font-medium text-ink' : ''}>
              {words.policies[policy]}
              {policy === advice.policy && ` (${words.now})`}
            </span>
          </li>
        ))}
      </ol>
    </div>
    {advice.evidence.length > 0 && (
      <>
        <p className="mt-1 text-xs text-soft">{words.metOf(advice.evidence.filter(({ met }) => met).length, advice.evidence.length)}</p>
        <ul className="mt-2 flex flex-col gap-1">
          {advice.evidence.map(({ met, text }) => (
            <li key={text} className="flex items-start gap-2">
              <span
                role="img"
                aria-label={met ? words.met : words.unmet}
                data-tip={met ? words.met : words.unmet}
                className="mt-0.5 shrink-0"
              >
                {met ? <CheckIcon size={16} className="text-good" /> : <UnmetIcon size={16} className="text-edge" />}
              </span>
              <span className={`min-w-0 [overflow-wrap:anywhere] ${met ? 'text-soft' : ''}`}>{text}</span>
            </li>
          ))}
        </ul>
      </>
    )}
    <div className="mt-3 border-t border-line pt-3">
      <RecordLines record={record} />
    </div>
  </section>
)

export const RecordLines = ({ record }: { record: { fullName: string; value: string } }) => (
  <dl className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-2 gap-y-1 text-sm md:grid-cols-[4rem_minmax(0,1fr)_auto] [&_dt]:col-span-2 [&_dt]:text-xs [&_dt]:text-soft md:[&_dt]:col-span-1">
    <dt>{words.recordName}</dt>
    <dd className="contents">
      <Code>{record.fullName}</Code>
      <CopyIconButton text={record.fullName} label={texts.dns.copyFullName} />
    </dd>
    <dt>{words.recordValue}</dt>
    <dd className="contents">
      <Code>{record.value}</Code>
      <CopyIconButton text={record.value} label={texts.dns.copyValue} />
    </dd>
  </dl>
)
