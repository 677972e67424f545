/** One received message: its parts, its checks, its copies and its event. Its HTML comes from a stranger and is shown as source only. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { get, octetsOf, save, withQuery } from '../api-client.ts'
import type { Email, ReceivedRetrieveData, ReceivedRetrieveRawData, WebhooksListData } from '../api-types.ts'
import { Button, Empty, Heading, Problem, Section, Warning } from '../parts/basic-components.tsx'
import { Addresses, besideFacts, Fact, Facts } from '../parts/facts.tsx'
import { HiddenContent } from '../parts/hidden-content.tsx'
import { BackTo, Waiting } from '../parts/paged-lists.tsx'
import { Checks, DmarcBadge, senderOf } from '../parts/received-checks.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { Pre, Prose, Time, Value } from '../parts/time-and-copy.tsx'
import { toastProblem } from '../parts/toast.tsx'
import { useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.receivedMessage
const list = texts.mailIn

export function ReceivedMessagePage() {
  const id = useParam('receivedId')
  const { scoped } = useHere()
  const at = `/v1/received/${encodeURIComponent(id)}`
  const path = scoped(at)
  const { data: message, error } = useQuery({ queryKey: ['received', path], queryFn: () => get<ReceivedRetrieveData>(path) })
  const raw = useMutation({
    mutationFn: () => get<ReceivedRetrieveRawData>(scoped(`${at}/raw`)),
    onSuccess: ({ rawMessage }) => save(`${id}.eml`, new Blob([octetsOf(rawMessage)], { type: 'message/rfc822' })),
    onError: toastProblem,
  })
  if (!message) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/mail-in">{texts.pages.mailIn}</BackTo>
      <Heading
        title={message.subject || texts.emails.noSubject}
        beside={<DmarcBadge of={message.authentication} />}
        about={senderOf(message)}
      >
        {!message.contentHidden && (
          <Button disabled={raw.isPending} onClick={() => raw.mutate()}>
            {words.raw}
          </Button>
        )}
      </Heading>
      <Problem error={error} />
      {message.autoSubmitted !== '' && message.autoSubmitted !== 'no' && <Warning>{words.automaticMeans(message.autoSubmitted)}</Warning>}
      <div className={besideFacts}>
        <div className="min-w-0 [&>p+section]:mt-0 [&>section:first-child]:mt-0">
          {message.inReplyTo !== null && <Answered id={message.inReplyTo} />}
          <Parts of={message} />
          <Section title={words.checks} about={words.checksHelp}>
            <Checks of={message.authentication} />
          </Section>
          <Done of={message} />
        </div>
        <MessageFacts of={message} />
      </div>
    </>
  )
}

/** The email that the message answers, by its subject. */
function Answered({ id }: { id: string }) {
  const { data } = useQuery({ queryKey: ['email', id, 'subject'], queryFn: () => get<Email>(`/v1/emails/${id}`), retry: false })
  return (
    <p className="mb-4 flex flex-wrap gap-x-2 rounded-lg border border-line px-4 py-2.5 text-sm">
      <span className="text-soft">{words.reply}</span>
      <EmailLink id={id}>{data?.subject || words.ownEmail}</EmailLink>
    </p>
  )
}

/** Its copies, and the webhooks that its event is for. */
function Done({ of: { forwarded, tenantId } }: { of: ReceivedRetrieveData }) {
  const path = withQuery('/v1/webhooks', { tenantId })
  const { data, error } = useQuery({ queryKey: ['webhooks', path], queryFn: () => get<WebhooksListData>(path) })
  const named = data?.webhooks.filter(({ enabled, allEvents, events }) => enabled && !allEvents && events.includes('MessageReceived'))
  return (
    <Section title={words.done}>
      <dl className="divide-y divide-line rounded-lg border border-line text-sm">
        <DoneLine name={words.forwardedTo}>
          {forwarded.length === 0 && <span className="text-soft">{words.notForwarded}</span>}
          {forwarded.map(({ to, emailId }) => (
            <span key={emailId} className="block">
              <EmailLink id={emailId}>{to}</EmailLink>
            </span>
          ))}
        </DoneLine>
        <DoneLine name={words.webhooks}>
          {error ? <Problem error={error} /> : null}
          {named?.length === 0 && (
            <span className={forwarded.length === 0 ? 'text-wait' : 'text-soft'}>
              {words.noWebhook}{' '}
              <Link to="/webhooks" search={{}} className="link">
                {words.addWebhook}
              </Link>
            </span>
          )}
          {named?.map(({ id, name }) => (
            <span key={id} className="block">
              <Link to="/webhooks/$webhookId" params={{ webhookId: id }} search={{ event: 'MessageReceived' }} className="link">
                {words.deliveries(name)}
              </Link>
            </span>
          ))}
        </DoneLine>
      </dl>
    </Section>
  )
}

const DoneLine = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="grid gap-x-3 px-4 py-2.5 grid-cols-[6.5rem_minmax(0,1fr)]">
    <dt className="text-xs leading-5 text-soft">{name}</dt>
    <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
  </div>
)

const EmailLink = ({ id, children }: { id: string; children: string }) => (
  <Link to="/emails/$emailId" params={{ emailId: id }} search={{}} className="link">
    {children}
  </Link>
)

function MessageFacts({ of: message }: { of: ReceivedRetrieveData }) {
  const { nameOf, tenants } = useHere()
  const { envelopeFrom, to, cc, replyTo, messageId, date } = message
  const recipients = message.recipients.map(({ address }) => address).join(', ')
  const addresses = [
    [list.recipients, recipients],
    [words.to, to === recipients ? '' : to],
    [words.cc, cc],
    [words.replyTo, replyTo],
  ] as const
  return (
    <Facts label={words.facts}>
      <Fact name={list.received}>
        <Time at={message.receivedAt} />
      </Fact>
      <Fact name={words.envelopeFrom}>
        {envelopeFrom === '' ? words.nullSender : <Addresses name={words.envelopeFrom} value={envelopeFrom} />}
      </Fact>
      {addresses.map(([name, value]) =>
        value === '' ? null : (
          <Fact key={name} name={name}>
            <Addresses name={name} value={value} />
          </Fact>
        ),
      )}
      {date !== '' && <Fact name={words.date}>{date}</Fact>}
      <Fact name={words.client}>
        <Value name={words.client}>{message.clientAddress}</Value>
      </Fact>
      {message.hops > 0 && <Fact name={words.hops}>{message.hops.toLocaleString()}</Fact>}
      <Fact name={words.size}>{texts.content.octets(message.size.toLocaleString())}</Fact>
      {tenants.length > 1 && <Fact name={texts.shell.tenant}>{nameOf(message.tenantId)}</Fact>}
      <Fact name={list.id}>
        <Value name={list.id}>{message.id}</Value>
      </Fact>
      {messageId !== '' && (
        <Fact name={texts.email.messageId}>
          <Value name={texts.email.messageId}>{messageId}</Value>
        </Fact>
      )}
    </Facts>
  )
}

const forms = ['text', 'html', 'headers', 'attachments'] as const
type Form = (typeof forms)[number]

function Parts({ of: message }: { of: ReceivedRetrieveData }) {
  const [form, setForm] = useState<Form>(message.text === null && message.html !== null ? 'html' : 'text')
  if (message.contentHidden)
    return (
      <Section title={words.content}>
        <HiddenContent />
      </Section>
    )
  const isAbsent = { text: message.text === null && message.html !== null, html: !message.html, attachments: message.attachmentCount === 0 }
  const shown = forms
    .filter((name) => name === 'headers' || !isAbsent[name])
    .map((name) => ({ name, label: words.forms[name], ...(name === 'attachments' ? { count: message.attachmentCount } : {}) }))
  return (
    <Section title={words.content} about={words.stranger}>
      {message.truncated && <p className="mb-2 text-sm text-wait">{words.cut}</p>}
      <Tabs label={words.form} tabs={shown} chosen={form} onChoose={setForm}>
        {form === 'attachments' ? <Attachments of={message} /> : <Source of={message} form={form} />}
      </Tabs>
    </Section>
  )
}

function Source({ of: { text, html, headers }, form }: { of: ReceivedRetrieveData; form: Exclude<Form, 'attachments'> }) {
  const shown = { text, html, headers: headers.map(({ name, value }) => `${name}: ${value}`).join('\n') }[form]
  if (!shown) return <Empty>{words.none}</Empty>
  return form === 'text' ? <Prose label={words.forms.text}>{shown}</Prose> : <Pre label={words.forms[form]}>{shown}</Pre>
}

function Attachments({ of: { attachments, attachmentCount } }: { of: ReceivedRetrieveData }) {
  if (attachments.length === 0) return <Empty>{words.noAttachments}</Empty>
  return (
    <ul className="flex flex-col gap-2 text-sm">
      {attachments.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attachments may share a name, and never move
        <li key={index} className="flex flex-wrap gap-x-3">
          <span className="font-medium [overflow-wrap:anywhere]">{one.filename || words.unnamed}</span>
          <span className="text-soft [overflow-wrap:anywhere]">
            {one.contentType}, {texts.content.octets(one.size.toLocaleString())}
          </span>
        </li>
      ))}
      {attachmentCount > attachments.length && <li className="text-soft">{list.more(attachmentCount - attachments.length)}</li>}
    </ul>
  )
}
