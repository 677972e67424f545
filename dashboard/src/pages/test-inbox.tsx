/** The test inbox: mail of test keys received by the simulator, which can be searched, read, cleared and sent for real. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useLayoutEffect, useState } from 'react'
import { get, getPage, newIdempotencyKey, type Page, postOnce, remove } from '../api-client.ts'
import type { Email, ReceivedEmail } from '../api-types.ts'
import { Confirm } from '../parts/action-dialogs.tsx'
import { Button, Empty, Heading, Problem, StatusBadge } from '../parts/basic-components.tsx'
import { Pager } from '../parts/data-table.tsx'
import { EmailContent } from '../parts/email-content.tsx'
import { Field } from '../parts/form-controls.tsx'
import { Waiting } from '../parts/paged-lists.tsx'
import { markRead, useReadMail } from '../parts/read-mail.ts'
import { Time } from '../parts/time-and-copy.tsx'
import { toast, toastProblem } from '../parts/toast.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const { inbox: words } = texts
const lookEveryMs = 3000
const statusEveryMs = 10_000
/** Each comes with its content. */
const perPage = 15

export function InboxPage() {
  const { scoped, mayChange } = useHere()
  const [filters, change] = useFilters()
  const [clearing, setClearing] = useState(false)
  const client = useQueryClient()
  const path = scoped('/v1/test/inbox', { search: filters.search, page: filters.page, perPage })
  const list = useQuery({
    queryKey: ['inbox', path],
    queryFn: () => getPage<ReceivedEmail>(path),
    placeholderData: keepPreviousData,
    refetchInterval: lookEveryMs,
  })
  const { data, error } = list
  const open = useOpen(list, filters.open)
  return (
    <>
      <Heading title={texts.pages.inbox} about={words.kept}>
        {mayChange && (
          <Button disabled={!data?.total} onClick={() => setClearing(true)}>
            {words.clear}
          </Button>
        )}
      </Heading>
      <SearchForm search={filters.search ?? ''} onSearch={(search) => change({ search, open: undefined })} />
      {!data && <Waiting error={error} />}
      {data && <Problem error={error} />}
      {data?.total === 0 && <Empty>{words.empty}</Empty>}
      {data && data.total > 0 && (
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6 xl:grid-cols-[24rem_minmax(0,1fr)]">
          <div className={open ? 'hidden xl:block' : ''}>
            <MailList mails={data.items} filters={filters} />
            <Pager {...data} onPage={(page) => change({ page: String(page) })} />
          </div>
          {open ? (
            <Reader key={open.emailId} mail={open} onBack={() => change({ open: undefined, page: filters.page })} />
          ) : (
            <p className="hidden text-soft xl:block">{words.none}</p>
          )}
        </div>
      )}
      {clearing && (
        <Confirm
          title={words.clearAsk}
          text={words.clearText}
          action={words.clear}
          run={() => remove(scoped('/v1/test/inbox'))}
          onDone={async () => {
            setClearing(false)
            change({ open: undefined })
            await client.invalidateQueries({ queryKey: ['inbox'] })
          }}
          onClose={() => setClearing(false)}
        />
      )}
    </>
  )
}

/** The opened mail, also after newer mail has moved it to another page of the list. */
function useOpen({ data, isPlaceholderData }: ListState, id: string | undefined): ReceivedEmail | undefined {
  const { tenantId } = useHere()
  const [last, setLast] = useState<{ mail: ReceivedEmail; tenantId: string | undefined }>()
  const listed = data?.items.find(({ emailId }) => emailId === id)
  // The rows of the list before may be of another tenant.
  if (listed && listed !== last?.mail && !isPlaceholderData) setLast({ mail: listed, tenantId })
  return listed ?? (last?.mail.emailId === id && last?.tenantId === tenantId ? last?.mail : undefined)
}

interface ListState {
  data: Page<ReceivedEmail> | undefined
  isPlaceholderData: boolean
}

function SearchForm({ search: begun, onSearch }: { search: string; onSearch: (search: string) => void }) {
  const [search, setSearch] = useState(begun)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSearch(search.trim())
  }
  return (
    <search className="mb-4 block">
      <form onSubmit={submit} className="flex items-end gap-2">
        <div className="grow md:max-w-sm">
          <Field
            bare
            type="search"
            label={words.search}
            placeholder={words.example}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </div>
        <Button type="submit">{texts.actions.search}</Button>
      </form>
    </search>
  )
}

/** Links that open a mail beside the list. */
function MailList({ mails, filters }: { mails: readonly ReceivedEmail[]; filters: Record<string, string | undefined> }) {
  const read = useReadMail()
  return (
    <ul aria-label={texts.pages.inbox} className="divide-y divide-line overflow-hidden rounded-lg border border-line">
      {mails.map((one) => (
        <li key={one.emailId}>
          <Link
            to="."
            search={{ ...filters, open: one.emailId } as never}
            data-row-link
            data-open={one.emailId === filters.open}
            className="block border-l-2 border-transparent px-3 py-2.5 text-sm hover:bg-sheet data-[open=true]:border-brand data-[open=true]:bg-sheet [overflow-wrap:anywhere]"
          >
            <span className="flex items-baseline justify-between gap-2">
              <span className={read.has(one.emailId) ? '' : 'font-semibold'}>{one.subject || texts.emails.noSubject}</span>
              {!read.has(one.emailId) && (
                <span role="img" aria-label={words.unread} data-tip={words.unread} className="size-2 shrink-0 rounded-full bg-accent" />
              )}
            </span>
            <span className="flex justify-between gap-2 text-xs text-soft">
              <span className="min-w-0 truncate">{words.fromTo(addressOf(one.from), one.to)}</span>
              <Time at={one.receivedAt} />
            </span>
            <span className="block truncate text-xs text-soft">{beginningOf(one.text)}</span>
          </Link>
        </li>
      ))}
    </ul>
  )
}

/** Its first words, without the addresses of links; a text may have megabytes. */
const beginningOf = (text: string) =>
  text
    .slice(0, 800)
    .replace(/\s?\[https?:[^\]\s]{0,400}\]?/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 120)

const addressOf = (from: string) => /<([^<>]{1,400})>/.exec(from)?.[1] ?? from

function Reader({ mail, onBack }: { mail: ReceivedEmail; onBack: () => void }) {
  const { mayChange } = useHere()
  const [promoting, setPromoting] = useState(false)
  const [promoted, setPromoted] = useState<string>()
  // Before the next paint: the list shows it as read at once.
  useLayoutEffect(() => markRead(mail.emailId), [mail.emailId])
  const client = useQueryClient()
  const deletion = useMutation({
    mutationFn: () => remove(`/v1/test/inbox/${mail.emailId}`),
    onSuccess: async () => {
      toast(words.deleted)
      onBack()
      await client.invalidateQueries({ queryKey: ['inbox'] })
    },
    onError: toastProblem,
  })
  return (
    <article aria-labelledby="subject" className="min-w-0">
      <Button className="mb-3 xl:hidden" onClick={onBack}>
        {texts.pages.inbox}
      </Button>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <h2 id="subject" className="min-w-0 text-lg font-semibold [overflow-wrap:anywhere]">
          {mail.subject || texts.emails.noSubject}
        </h2>
        {mayChange && (
          <div className="flex gap-2">
            <Button disabled={deletion.isPending} onClick={() => deletion.mutate()}>
              {words.delete}
            </Button>
            <Button onClick={() => setPromoting(true)}>{words.promote}</Button>
          </div>
        )}
      </div>
      <Facts mail={mail} />
      {promoted && (
        <p role="status" className="mt-3 rounded-md bg-good-back p-3 text-sm text-good">
          {words.promoted} <EmailLink id={promoted}>{words.open}</EmailLink>
        </p>
      )}
      <EmailContent id={mail.emailId} from={mail.from} links={mail.links} isHidden={mail.contentHidden} isPage />
      {promoting && (
        <PromoteDialog
          mail={mail}
          onDone={(id) => {
            setPromoting(false)
            setPromoted(id)
          }}
          onClose={() => setPromoting(false)}
        />
      )}
    </article>
  )
}

/** One key for each opened dialog: a repeated click after a lost reply sends no second email. */
function PromoteDialog({ mail, onDone, onClose }: { mail: ReceivedEmail; onDone: (id: string) => void; onClose: () => void }) {
  const [key] = useState(newIdempotencyKey)
  return (
    <Confirm
      title={words.promoteAsk}
      text={words.promoteText(mail.to)}
      action={words.promote}
      run={() => postOnce<{ id: string }>(`/v1/emails/${mail.emailId}/promote`, key)}
      onDone={({ id }) => onDone(id)}
      onClose={onClose}
    />
  )
}

function Facts({ mail }: { mail: ReceivedEmail }) {
  const { data } = useQuery({
    queryKey: ['email', mail.emailId, 'status'],
    queryFn: () => get<Email>(`/v1/emails/${mail.emailId}`),
    refetchInterval: statusEveryMs,
  })
  return (
    <dl className="mt-1 flex flex-wrap items-center gap-x-4 gap-y-1 text-sm [&>div]:flex [&>div]:min-w-0 [&>div]:gap-x-1.5 [&_dd]:[overflow-wrap:anywhere] [&_dt]:text-soft">
      <div>
        <dt>{words.from}</dt>
        <dd>{mail.from}</dd>
      </div>
      <div>
        <dt>{words.to}</dt>
        <dd>{mail.to}</dd>
      </div>
      <div>
        <dt className="sr-only">{words.received}</dt>
        <dd className="text-soft">
          <Time at={mail.receivedAt} />
        </dd>
      </div>
      <div>
        <dt className="sr-only">{words.email}</dt>
        <dd className="flex items-center gap-2">
          {data && <StatusBadge status={data.status} />}
          <EmailLink id={mail.emailId}>{words.open}</EmailLink>
        </dd>
      </div>
    </dl>
  )
}

const EmailLink = ({ id, children }: { id: string; children: string }) => (
  <Link to="/emails/$emailId" params={{ emailId: id }} search={{}} className="link">
    {children}
  </Link>
)
