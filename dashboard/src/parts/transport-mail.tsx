/** The mail of the last seven days that each transport took, and that of the default. */
import { useQuery } from '@tanstack/react-query'
import { get, withQuery } from '../api-client.ts'
import type { ReputationRetrieveData, Transport } from '../api-types.ts'
import { texts } from '../texts.ts'
import { tablePercent } from './chart.tsx'

const words = texts.transports

export type Counts = Pick<ReputationRetrieveData['totals'], 'accepted' | 'failed' | 'blocked'>

/**
 * Live mail of the last seven days, by transport: the provider of its attempts has its name. Without a name: the other mail, which takes the
 * default. Undefined while it is not known.
 */
export function useMailOfTransports(transports: readonly Transport[]): (name: string | undefined) => Counts | undefined {
  const path = withQuery('/v1/reputation', { groupBy: 'provider' })
  const { data } = useQuery({ queryKey: ['reputation', path], queryFn: () => get<ReputationRetrieveData>(path) })
  const groupOf = (name: string) => data?.groups.find((one) => one.name === name)
  return (name) => {
    if (name !== undefined || !data) return name === undefined ? undefined : groupOf(name)
    const others = (key: keyof Counts) => transports.reduce((sum, one) => sum - (groupOf(one.name)?.[key] ?? 0), data.totals[key])
    return { accepted: others('accepted'), failed: others('failed'), blocked: others('blocked') }
  }
}

/** `isExpected`: it has a share of the mail. */
export function WeekOfMail({ of: counts, isExpected }: { of: Counts | undefined; isExpected: boolean }) {
  const final = counts ? counts.accepted + counts.failed + counts.blocked : 0
  if (!counts || final === 0) return <span className={isExpected ? 'text-wait' : 'text-soft'}>{words.noMail}</span>
  return (
    <>
      {counts.accepted.toLocaleString()}
      <span className="text-soft md:block md:text-xs"> {words.deliveryRate(tablePercent(counts.accepted, final))}</span>
    </>
  )
}
