/** The requests of the last day, by webhook. */
import { useQueries } from '@tanstack/react-query'
import { get, withQuery } from '../api-client.ts'
import type { WebhookUseResponse } from '../api-types.ts'

const useEveryMs = 30_000
/** Webhooks per request. */
const maxTogether = 100

/** Of the webhooks with these ids; undefined: not all is loaded. A webhook without requests is left out. */
export function useLastDay(ids: readonly string[]): WebhookUseResponse['webhooks'] | undefined {
  const parts = Array.from({ length: Math.ceil(ids.length / maxTogether) }, (_, index) =>
    ids.slice(index * maxTogether, (index + 1) * maxTogether).join(','),
  )
  return useQueries({
    queries: parts.map((webhooks) => ({
      queryKey: ['use of webhooks', webhooks],
      queryFn: () => get<WebhookUseResponse>(withQuery('/dashboard/api/use/webhooks', { webhooks })),
      refetchInterval: useEveryMs,
    })),
    combine: (results) =>
      results.every(({ data }) => data)
        ? (Object.assign({}, ...results.map(({ data }) => data?.webhooks)) as WebhookUseResponse['webhooks'])
        : undefined,
  })
}
