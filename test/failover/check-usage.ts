/** Compares the usage and the send limit with the emails that the API lists. */
import { type Clock, pause } from '#base'

const equalWithinMs = 30_000
const pollMs = 500
const hourMs = 3_600_000

interface Usage {
  emails: { sent: number; delivered: number }
  sendLimit: { used: number } | null
}

/** Sentences for each difference that remains after a while; counts follow the emails within seconds. */
export async function usageDifferences(clock: Clock, url: string, key: string): Promise<string[]> {
  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`${url}/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
    return (await answer.json()) as T
  }
  const total = async (filter: string) => (await get<{ total: number }>(`/emails?perPage=1${filter}`)).total
  const untilMs = clock.monotonicMs() + equalWithinMs
  for (;;) {
    const hour = Math.floor(clock.nowMs() / hourMs) * hourMs
    const { data } = await get<{ data: Usage }>('/usage?period=last_7_days')
    const [all, sent, thisHour] = await Promise.all([
      total(''),
      total('&status=sent'),
      total(`&after=${encodeURIComponent(new Date(hour).toISOString())}`),
    ])
    const isSameHour = Math.floor(clock.nowMs() / hourMs) * hourMs === hour
    const differences = [
      ...(data.emails.sent === all ? [] : [`usage counts ${data.emails.sent} emails of ${all}`]),
      ...(data.emails.delivered === sent ? [] : [`usage counts ${data.emails.delivered} delivered emails of ${sent}`]),
      ...(data.sendLimit?.used === thisHour || !isSameHour
        ? []
        : [`the send limit counts ${data.sendLimit?.used} emails of ${thisHour} this hour`]),
    ]
    if (differences.length === 0 || clock.monotonicMs() > untilMs) return differences
    await pause(clock, pollMs)
  }
}
