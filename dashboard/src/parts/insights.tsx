/** The results of the checks of one message. Its HTML is parsed without running scripts or loading resources (DOMParser). */
import { useQuery } from '@tanstack/react-query'
import { get } from '../api-client.ts'
import type { Email } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Empty, Problem, Skeleton } from './basic-components.tsx'
import { type Check, type CheckedMessage, checkMessage } from './message-checks.ts'

const words = texts.insights
const tones = { good: 'good', advice: 'wait', problem: 'bad' } as const
/** Results that need action first. */
const order = ['problem', 'advice', 'good'] as const satisfies readonly Check['state'][]

function toCheck(email: Email, from: string): CheckedMessage {
  const page = new DOMParser().parseFromString(email.htmlBody ?? '', 'text/html')
  const head = email.rawMessage === undefined ? '' : (atob(email.rawMessage).split(/\r?\n\r?\n/)[0] ?? '')
  const signatures = head.replace(/\r?\n[ \t]+/g, ' ').matchAll(/^dkim-signature:.*?[;\s]d=([^;\s]+)/gim)
  return {
    from,
    html: email.htmlBody,
    text: email.plainBody,
    headers: email.headers ?? {},
    signedBy: [...signatures].map(([, domain = '']) => domain),
    links: [...page.querySelectorAll('a[href]')].map((link) => link.getAttribute('href') ?? ''),
    imagesWithoutAlt: page.querySelectorAll('img:not([alt])').length,
  }
}

export function Insights({ id, from }: { id: string; from: string }) {
  const { data, error } = useQuery({
    queryKey: ['email', id, 'insights'],
    queryFn: () => get<Email>(`/v1/emails/${id}?expand=content,headers,raw`),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (!data) return error ? <Problem error={error} /> : <Skeleton lines={6} />
  if (!data.htmlBody && !data.plainBody) return <Empty>{words.none}</Empty>
  const checks = checkMessage(toCheck(data, from))
  return (
    <>
      <p className="mb-2 text-xs text-soft">{words.about}</p>
      <ul className="divide-y divide-line rounded-lg border border-line text-sm">
        {order
          .flatMap((state) => checks.filter((one) => one.state === state))
          .map(({ state, text }) => (
            <li key={text} className="flex items-start gap-3 px-3 py-2">
              <span className="w-16 shrink-0">
                <Badge tone={tones[state]}>{words.states[state]}</Badge>
              </span>
              <span className="min-w-0 [overflow-wrap:anywhere]">{text}</span>
            </li>
          ))}
      </ul>
    </>
  )
}
