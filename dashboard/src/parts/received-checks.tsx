/** The sender of a received message, and its SPF, DKIM and DMARC results: as one badge, and in full. */
import type { ReactNode } from 'react'
import type { ReceivedListItem } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, type Tone } from './basic-components.tsx'

type Authentication = NonNullable<ReceivedListItem['authentication']>

const words = texts.mailIn
const more = texts.receivedMessage

/** Without a tone: the domain publishes no record or no opinion. */
const tones: Partial<Record<Authentication['spf']['result'], Tone>> = {
  pass: 'good',
  fail: 'bad',
  softfail: 'wait',
  temperror: 'wait',
  permerror: 'wait',
}

const Result = ({ of: result }: { of: Authentication['spf']['result'] }) => <Badge tone={tones[result] ?? 'none'}>{result}</Badge>

/** Only DMARC compares the results with the address in From, which people read. `isShort`: in a column that names it. */
export const DmarcBadge = ({ of: authentication, isShort = false }: { of: Authentication | null; isShort?: boolean }) =>
  authentication === null ? (
    <Badge tone="wait" title={words.notCheckedMeans}>
      {words.notChecked}
    </Badge>
  ) : (
    <Badge tone={tones[authentication.dmarc.result] ?? 'none'} title={words.dmarcMeans[authentication.dmarc.result]}>
      {isShort && <span className="hidden md:inline">{authentication.dmarc.result}</span>}
      <span className={isShort ? 'md:hidden' : ''}>{words.dmarc(authentication.dmarc.result)}</span>
    </Badge>
  )

export function Checks({ of: authentication }: { of: Authentication | null }) {
  if (authentication === null) return <p className="text-sm text-soft">{words.notCheckedMeans}</p>
  const { spf, dkim, dmarc } = authentication
  return (
    <dl className="divide-y divide-line rounded-lg border border-line text-sm">
      <Check name="DMARC">
        <Line result={dmarc.result} of={dmarc.domain} about={dmarc.policy === null ? undefined : more.policy(dmarc.policy)} />
        <span className="block text-xs text-soft">{words.dmarcMeans[dmarc.result]}</span>
      </Check>
      <Check name="SPF">
        <Line result={spf.result} of={spf.domain} />
      </Check>
      <Check name="DKIM">
        {dkim.length === 0 && <span className="text-soft">{more.noSignature}</span>}
        {dkim.map(({ result, domain, selector }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a message may have a signature twice, and they never move
          <Line key={index} result={result} of={domain} about={more.selector(selector)} />
        ))}
      </Check>
    </dl>
  )
}

const Check = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="grid grid-cols-[6.5rem_minmax(0,1fr)] gap-x-3 px-4 py-2.5">
    <dt className="text-xs leading-5 text-soft">{name}</dt>
    <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
  </div>
)

const Line = ({ result, of: domain, about }: { result: Authentication['spf']['result']; of: string; about?: string | undefined }) => (
  <span className="block">
    <Result of={result} /> {domain} {about !== undefined && <span className="text-xs text-soft">{about}</span>}
  </span>
)

/** As the message names it; only DMARC proves the domain. */
export const senderOf = ({ from, fromName }: Pick<ReceivedListItem, 'from' | 'fromName'>) =>
  from === '' ? words.noSender : fromName === '' ? from : `${fromName} <${from}>`
