/** The columns of a list of emails, with the marks of each: test, opened, clicked, complained. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { get } from '../api-client.ts'
import type { EmailMarksResponse, ListedEmail } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Badge, QuietStatus } from './basic-components.tsx'
import type { Column } from './data-table.tsx'
import { ClickedIcon, ComplaintIcon, OpenedIcon } from './icons.tsx'
import { RowLink } from './paged-lists.tsx'
import { Time } from './time-and-copy.tsx'

const words = texts.emails
const everyMs = 10_000
type Marks = EmailMarksResponse['marks'][string]

/** The marks of the listed emails, loaded after the list. */
function useMarks(emails: readonly ListedEmail[]): EmailMarksResponse['marks'] {
  const names = emails.map(({ tenantId, id }) => `${tenantId}.${id}`).join(',')
  const { data } = useQuery({
    queryKey: ['email-marks', names],
    queryFn: () => get<EmailMarksResponse>(`/dashboard/api/email-marks?emails=${encodeURIComponent(names)}`),
    enabled: names !== '',
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
  })
  return data?.marks ?? {}
}

export function useEmailColumns(emails: readonly ListedEmail[]): readonly Column<ListedEmail>[] {
  const { tenantId, tenants, nameOf } = useHere()
  const marks = useMarks(emails)
  return [
    {
      name: words.columns.to,
      phone: 'title',
      className: 'md:max-w-60 md:truncate',
      cell: (one) => <RowLink to={`/emails/${one.id}`}>{one.to}</RowLink>,
    },
    {
      name: words.columns.status,
      phone: 'side',
      className: 'whitespace-nowrap',
      cell: ({ status }) => <QuietStatus status={status} />,
    },
    {
      name: words.columns.subject,
      phone: 'full',
      className: 'md:max-w-72 md:truncate',
      cell: (one) => (
        <>
          {one.test && <Badge tone="none">{texts.mail.badge}</Badge>} {one.subject || words.noSubject}
        </>
      ),
    },
    { name: words.columns.from, phone: 'none', className: 'max-w-56 truncate text-soft', cell: (one) => addressOf(one.from) },
    ...(tenantId === undefined && tenants.length > 1
      ? [
          {
            name: words.columns.tenant,
            phone: 'line' as const,
            className: 'text-soft md:max-w-36 md:truncate',
            cell: (one: ListedEmail) => nameOf(one.tenantId),
          },
        ]
      : []),
    { name: words.columns.tag, phone: 'none', className: 'max-w-28 truncate', cell: (one) => one.tag && <Tag name={one.tag} /> },
    { name: words.columns.activity, phone: 'line', className: 'whitespace-nowrap', cell: (one) => <Activity marks={marks[one.id]} /> },
    {
      name: words.columns.accepted,
      phone: 'line',
      className: 'whitespace-nowrap text-soft',
      cell: (one) => <Time at={one.timestampIso} clock="minutes" ofDay />,
    },
  ]
}

const addressOf = (from: string) => /<([^>]+)>/.exec(from)?.[1] ?? from

const Tag = ({ name }: { name: string }) => (
  <Link to="/emails" search={{ tag: name }} className="text-xs text-soft hover:text-ink hover:underline">
    {name}
  </Link>
)

/** The strongest reaction of the recipient: a click implies an opening. */
function Activity({ marks }: { marks: Marks | undefined }) {
  if (marks?.complainedAt)
    return (
      <Reaction icon={<ComplaintIcon size={12} />} tone="text-bad">
        {words.marks.complained}
      </Reaction>
    )
  if (marks?.clickedAt) return <Reaction icon={<ClickedIcon size={12} />}>{words.marks.clicked}</Reaction>
  return marks?.openedAt ? <Reaction icon={<OpenedIcon size={12} />}>{words.marks.opened}</Reaction> : null
}

const Reaction = ({ icon, tone = 'text-soft', children }: { icon: ReactNode; tone?: string; children: ReactNode }) => (
  <span className={`inline-flex items-center gap-1 align-middle text-xs ${tone}`}>
    {icon}
    {children}
  </span>
)
