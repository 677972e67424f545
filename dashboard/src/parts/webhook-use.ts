/** The requests of the last day, by webhook. */
import { useQuery } from '@tanstack/react-query'
import { get } from '../api-client.ts'
import type { WebhookUseResponse } from '../api-types.ts'

const useEveryMs = 30_000

export function useLastDay(): WebhookUseResponse['webhooks'] | undefined {
  const path = '/dashboard/api/use/webhooks'
  const { data } = useQuery({ queryKey: ['use of webhooks'], queryFn: () => get<WebhookUseResponse>(path), refetchInterval: useEveryMs })
  return data?.webhooks
}
