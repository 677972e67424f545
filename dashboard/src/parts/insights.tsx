/** The findings of one message: its signatures as they were sent, and the checks of the service, which use no network. */
import { useQuery } from '@tanstack/react-query'
import { get } from '../api-client.ts'
import type { Email, EmailFindingsResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Empty, Problem, Skeleton } from './basic-components.tsx'
import { type Check, checkSignatures, signersOf } from './message-checks.ts'

const words = texts.insights
const tones = { ok: 'good', advice: 'wait', problem: 'bad' } as const
/** Results that need action first. */
const order = ['problem', 'advice', 'ok'] as const satisfies readonly Check['severity'][]

const useFindings = (id: string, enabled = true) =>
  useQuery({
    queryKey: ['email', id, 'findings'],
    queryFn: () => get<EmailFindingsResponse>(`/dashboard/api/emails/${id}/findings`),
    staleTime: Number.POSITIVE_INFINITY,
    enabled,
  })

/** The number of findings of the service that need action; undefined until it is known. */
export function useProblems(id: string, enabled: boolean): number | undefined {
  const { data } = useFindings(id, enabled)
  return data?.findings.filter(({ severity }) => severity === 'problem').length
}

export function Insights({ id, from }: { id: string; from: string }) {
  const sent = useQuery({
    queryKey: ['email', id, 'raw'],
    queryFn: () => get<Email>(`/v1/emails/${id}?expand=raw`),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const checked = useFindings(id)
  const error = sent.error ?? checked.error
  if (!sent.data || !checked.data) return error ? <Problem error={error} /> : <Skeleton lines={6} />
  if (checked.data.findings.length === 0) return <Empty>{words.none}</Empty>
  const signed =
    sent.data.rawMessage === undefined ? [] : [{ ...checkSignatures(signersOf(atob(sent.data.rawMessage)), from), suggestion: null }]
  const findings = [...signed, ...checked.data.findings]
  return (
    <>
      <p className="mb-2 text-sm">
        {words.summary(
          findings.filter(({ severity }) => severity === 'problem').length,
          findings.filter(({ severity }) => severity === 'advice').length,
        )}{' '}
        <span className="text-soft">{words.about}</span>
      </p>
      <ul aria-label={texts.content.forms.insights} className="divide-y divide-line rounded-lg border border-line text-sm">
        {order
          .flatMap((state) => findings.filter(({ severity }) => severity === state))
          .map(({ severity, message, suggestion }) => (
            <li key={message} className="flex items-start gap-3 px-3 py-2">
              <span className="w-16 shrink-0">
                <Badge tone={tones[severity]}>{words.states[severity]}</Badge>
              </span>
              <span className="min-w-0 [overflow-wrap:anywhere]">
                {message}
                {suggestion && <span className="block text-soft">{suggestion}</span>}
              </span>
            </li>
          ))}
      </ul>
    </>
  )
}
