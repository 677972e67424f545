/** The columns of a list of emails, with the marks of each: test, opened, clicked, complained. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { get } from '../api-client.ts'
import type { EmailMarksResponse, ListedEmail } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Badge, StatusBadge } from './basic-components.tsx'
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
      className: 'max-w-60 md:truncate',
      cell: (one) => <RowLink to={`/emails/${one.id}`}>{one.to}</RowLink>,
    },
    {
      name: words.columns.status,
      phone: 'side',
      className: 'whitespace-nowrap',
      cell: (one) => <State email={one} marks={marks[one.id]} />,
    },
    {
      name: words.columns.subject,
      phone: 'line',
      className: 'max-w-72 md:truncate',
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
            phone: 'none' as const,
            className: 'max-w-36 truncate text-soft',
            cell: (one: ListedEmail) => nameOf(one.tenantId),
          },
        ]
      : []),
    { name: words.columns.tag, phone: 'none', className: 'max-w-28 truncate', cell: (one) => one.tag && <Tag name={one.tag} /> },
    {
      name: words.columns.accepted,
      phone: 'line',
      className: 'whitespace-nowrap text-soft',
      cell: (one) => <Time at={one.timestampIso} clock="minutes" />,
    },
  ]
}

const addressOf = (from: string) => /<([^>]+)>/.exec(from)?.[1] ?? from

const Tag = ({ name }: { name: string }) => (
  <Link to="/emails" search={{ tag: name }} className="text-xs text-soft hover:text-ink hover:underline">
    {name}
  </Link>
)

/** The strongest reaction of the recipient beside the status: a click implies an opening. */
const State = ({ email, marks }: { email: ListedEmail; marks: Marks | undefined }) => (
  <span className="inline-flex items-center gap-1.5">
    <StatusBadge status={email.status} />
    {marks?.complainedAt ? (
      <span className="inline-flex items-center gap-1 text-xs text-bad">
        <ComplaintIcon size={12} />
        {words.marks.complained}
      </span>
    ) : marks?.clickedAt ? (
      <Reaction icon={<ClickedIcon size={12} />}>{words.marks.clicked}</Reaction>
    ) : (
      marks?.openedAt && <Reaction icon={<OpenedIcon size={12} />}>{words.marks.opened}</Reaction>
    )}
  </span>
)

const Reaction = ({ icon, children }: { icon: ReactNode; children: ReactNode }) => (
  <span className="inline-flex items-center gap-1 text-xs text-soft">
    {icon}
    {children}
  </span>
)
