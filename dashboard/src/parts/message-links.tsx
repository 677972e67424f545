/** The links of a test message, and the answer of each when a member asks for them to be requested. */
import { useMutation } from '@tanstack/react-query'
import { post } from '../api-client.ts'
import type { EmailLinksResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Badge, Button, Empty, Problem } from './basic-components.tsx'
import { CopyIconButton } from './time-and-copy.tsx'

const words = texts.inbox
const tones = { works: 'good', refuses: 'wait', broken: 'bad', unchecked: 'none' } as const
type Checked = EmailLinksResponse['links'][number]

/** `links`: of the message as it was sent. The service requests those of the message as it was submitted, so that no click is counted. */
export function MessageLinks({ id, links }: { id: string; links: readonly string[] }) {
  const { mayChange } = useHere()
  const check = useMutation({ mutationFn: () => post<EmailLinksResponse>(`/dashboard/api/emails/${id}/check-links`) })
  const checked = check.data?.links
  const shown: readonly (Pick<Checked, 'url'> & Partial<Checked>)[] = checked ?? links.map((url) => ({ url }))
  return (
    <>
      {links.length === 0 && <Empty>{words.noLinks}</Empty>}
      <Problem error={check.error} />
      <div className="mb-3 flex flex-wrap items-center justify-between gap-x-4 gap-y-2 text-sm text-soft empty:hidden">
        <p role="status" className="max-w-prose empty:hidden">
          {checked
            ? words.checkedLinks(checked.filter(({ state }) => state === 'broken').length, checked.length)
            : mayChange && links.length > 0 && words.checkHelp}
        </p>
        {mayChange && links.length > 0 && (
          <Button disabled={check.isPending} onClick={() => check.mutate()}>
            {check.isPending ? words.checkingLinks : words.checkLinks}
          </Button>
        )}
      </div>
      {shown.length > 0 && (
        <ul aria-label={words.links} className="divide-y divide-line rounded-lg border border-line text-sm">
          {shown.map((one) => (
            <li key={one.url} className="flex items-center gap-3 py-1.5 pr-1.5 pl-3">
              <span className="min-w-0 grow">
                <Target url={one.url} />
                {one.state && one.state !== 'works' && <span className="block text-xs text-soft">{one.message}</span>}
              </span>
              {one.state && <Badge tone={tones[one.state]}>{labelOf(one)}</Badge>}
              <CopyIconButton text={one.url} label={texts.actions.copyOf(one.url)} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

const labelOf = ({ state, statusCode }: Partial<Checked>) =>
  state === undefined ? '' : statusCode ? `${words.linkStates[state]} · ${statusCode}` : words.linkStates[state]

/** Followed only on a click, without a Referer header. */
const Target = ({ url }: { url: string }) =>
  /^https?:\/\//i.test(url) ? (
    <a href={url} target="_blank" rel="noopener noreferrer" className="link [overflow-wrap:anywhere]">
      {url}
    </a>
  ) : (
    <span className="[overflow-wrap:anywhere]">{url}</span>
  )
