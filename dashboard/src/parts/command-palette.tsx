/** The search over everything (Ctrl-K): pages, an id, an address, a domain, a webhook, a tenant; and the list of keys (?). */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { get, getPage, withQuery } from '../api-client.ts'
import type { DomainsListData, ListedEmail, ShownMember, WebhooksListData } from '../api-types.ts'
import { groupsFor } from '../places.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { StatusBadge } from './basic-components.tsx'
import { Dialog } from './dialog.tsx'
import { DomainsIcon, EmailsIcon, LogsIcon, SearchIcon, SuppressionsIcon, TenantsIcon, WebhooksIcon } from './icons.tsx'

const words = texts.palette
const size = 16
const maxOfKind = 5
const minLetters = 3
const typingMs = 200

interface Result {
  key: string
  icon: ReactNode
  name: string
  aside?: ReactNode
  to: string
  search?: Record<string, string>
  tenantId?: string
}

export default function Palette({ isHelp, onClose }: { isHelp: boolean; onClose: () => void }) {
  return isHelp ? <Keys onClose={onClose} /> : <Search onClose={onClose} />
}

const Keys = ({ onClose }: { onClose: () => void }) => (
  <Dialog title={words.keys} onClose={onClose}>
    <dl className="grid grid-cols-[auto_1fr] items-center gap-x-6 gap-y-2 text-sm">
      {words.keyList.map(([keys, does]) => (
        <div key={keys} className="contents">
          <dt>
            {keys.split(' ').map((key) => (
              <kbd key={key} className="kbd mr-1">
                {key}
              </kbd>
            ))}
          </dt>
          <dd className="text-soft">{does}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
)

/** The text, once the typing pauses. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), typingMs)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

const contains = (text: string, part: string) => text.toLowerCase().includes(part.toLowerCase())

/** Results that follow from the form of the text alone. */
function direct(text: string): Result[] {
  if (/^[0-9A-Za-z]{22}$/.test(text))
    return [{ key: 'id', icon: <EmailsIcon size={size} />, name: words.openEmail(text), to: `/emails/${text}` }]
  if (/^req_\w+$/.test(text))
    return [{ key: 'request', icon: <LogsIcon size={size} />, name: words.openRequest(text), to: `/logs/${text}` }]
  if (text.includes('@'))
    return [
      { key: 'to', icon: <EmailsIcon size={size} />, name: words.emailsTo(text), to: '/emails', search: { to: text, mail: 'all' } },
      { key: 'from', icon: <EmailsIcon size={size} />, name: words.emailsFrom(text), to: '/emails', search: { from: text, mail: 'all' } },
      { key: 'list', icon: <SuppressionsIcon size={size} />, name: words.suppressed(text), to: '/suppressions', search: { address: text } },
    ]
  if (text.length < minLetters) return []
  const isDomain = /^[\w-]+(\.[\w-]+)+$/.test(text)
  return [
    ...(isDomain
      ? [{ key: 'domain', icon: <EmailsIcon size={size} />, name: words.emailsOfDomain(text), to: '/emails', search: { domain: text } }]
      : []),
    { key: 'subject', icon: <SearchIcon size={size} />, name: words.subjects(text), to: '/emails', search: { subject: text } },
    { key: 'list', icon: <SuppressionsIcon size={size} />, name: words.suppressed(text), to: '/suppressions', search: { address: text } },
  ]
}

const pagesFor = (member: ShownMember, text: string): Result[] =>
  groupsFor(member)
    .flatMap(({ places }) => places)
    .filter(({ name }) => contains(name, text))
    .map(({ to, name, icon }) => ({ key: to, icon, name, aside: words.page, to }))

/** Things of the installation whose name contains the text. */
function useNamed(text: string): Result[] {
  const { scoped, ofAll, tenants } = useHere()
  const keep = { staleTime: 60_000, enabled: text.length > 1 }
  const domainsPath = scoped('/v1/domains')
  const webhooksPath = scoped('/v1/webhooks', ofAll)
  const domains = useQuery({ queryKey: ['domains', 'palette', domainsPath], queryFn: () => get<DomainsListData>(domainsPath), ...keep })
  const webhooks = useQuery({
    queryKey: ['webhooks', 'palette', webhooksPath],
    queryFn: () => get<WebhooksListData>(webhooksPath),
    ...keep,
  })
  if (text.length < 2) return []
  const found = <Item,>(items: readonly Item[] | undefined, name: (item: Item) => string) =>
    (items ?? []).filter((item) => contains(name(item), text)).slice(0, maxOfKind)
  return [
    ...found(domains.data?.domains, ({ name }) => name).map(({ id, name, tenant_name: tenant }) => ({
      key: `domain ${id}`,
      icon: <DomainsIcon size={size} />,
      name,
      aside: tenant,
      to: `/domains/${id}`,
    })),
    ...found(webhooks.data?.webhooks, ({ name, url }) => `${name} ${url}`).map(({ id, name, url }) => ({
      key: `webhook ${id}`,
      icon: <WebhooksIcon size={size} />,
      name,
      aside: url,
      to: `/webhooks/${id}`,
    })),
    ...found(tenants, ({ name }) => name).map(({ id, name }) => ({
      key: `tenant ${id}`,
      icon: <TenantsIcon size={size} />,
      name: words.tenant(name),
      to: '/',
      tenantId: id,
    })),
  ]
}

/** The latest emails to an address. */
function useEmailsTo(text: string): Result[] {
  const { tenantId } = useHere()
  const isAddress = /^\S+@\S+\.\S+$/.test(text)
  const path = withQuery('/v1/emails', { to: text, perPage: maxOfKind, tenantId })
  const { data } = useQuery({ queryKey: ['emails', path], queryFn: () => getPage<ListedEmail>(path), enabled: isAddress })
  return (isAddress ? (data?.items ?? []) : []).map(({ id, subject, status }) => ({
    key: id,
    icon: <EmailsIcon size={size} />,
    name: subject || texts.emails.noSubject,
    aside: <StatusBadge status={status} />,
    to: `/emails/${id}`,
  }))
}

function Search({ onClose }: { onClose: () => void }) {
  const { member, choose } = useHere()
  const [text, setText] = useState('')
  const [index, setIndex] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const settled = useSettled(text.trim())
  const navigate = useNavigate()
  const id = useId()
  const results = [...useEmailsTo(settled), ...useNamed(settled), ...pagesFor(member, text.trim()), ...direct(text.trim())]
  const at = Math.min(index, results.length - 1)
  const go = (result: Result | undefined) => {
    if (!result) return
    onClose()
    if (result.tenantId !== undefined) choose(result.tenantId)
    void navigate({ to: result.to as '/', search: (result.search ?? {}) as never })
  }
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      const next = (at + step + results.length) % Math.max(1, results.length)
      setIndex(next)
      list.current?.children[next]?.scrollIntoView({ block: 'nearest' })
    }
    if (event.key === 'Enter') {
      event.preventDefault()
      go(results[at])
    }
  }
  return (
    <Dialog title={words.title} onClose={onClose}>
      <input
        // biome-ignore lint/a11y/noAutofocus: the dialog was opened to type here
        autoFocus
        role="combobox"
        aria-label={words.title}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={results[at] ? `${id}-${at}` : undefined}
        placeholder={words.hint}
        value={text}
        onChange={({ target }) => {
          setText(target.value)
          setIndex(0)
        }}
        onKeyDown={onKey}
        className="mb-2 min-h-10 w-full rounded-md border border-edge/60 bg-paper px-3 text-base placeholder:text-soft"
      />
      <div ref={list} id={id} role="listbox" aria-label={words.results} className="max-h-[22rem] overflow-y-auto">
        {results.map((result, position) => (
          <Option key={result.key} id={`${id}-${position}`} result={result} isActive={position === at} onGo={() => go(result)} />
        ))}
      </div>
      {results.length === 0 && <p className="p-3 text-sm text-soft">{words.none}</p>}
    </Dialog>
  )
}

const Option = ({ id, result, isActive, onGo }: { id: string; result: Result; isActive: boolean; onGo: () => void }) => (
  // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys of the list
  <div
    id={id}
    role="option"
    tabIndex={-1}
    aria-selected={isActive}
    onClick={onGo}
    className="flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-2 text-sm hover:bg-sheet aria-selected:bg-accent-back"
  >
    <span className="text-soft">{result.icon}</span>
    <span className="min-w-0 grow truncate">{result.name}</span>
    <span className="max-w-[45%] shrink-0 truncate text-xs text-soft">{result.aside}</span>
  </div>
)
