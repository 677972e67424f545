/** One event sent to a webhook: the request and the response of its newest attempt, or of an earlier one. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, getPage, withQuery } from '../api-client.ts'
import type { WebhookDelivery, WebhooksRetrieveDeliveryData } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { zonedFormat } from '../time-zone.ts'
import { Button, Problem, Skeleton } from './basic-components.tsx'
import { Dialog } from './dialog.tsx'
import { Select } from './form-controls.tsx'
import { HiddenContent } from './hidden-content.tsx'
import { JsonText } from './json-text.tsx'
import { QuietState } from './quiet-state.tsx'
import { CopyIconButton, Pre, Time } from './time-and-copy.tsx'

const words = texts.webhook
const maxAttempts = 100

/** A failed attempt is red also while another follows: the time of that one is beside it. */
export const Answer = ({ of: { success, statusCode } }: { of: Pick<WebhookDelivery, 'success' | 'statusCode'> }) =>
  success ? (
    <QuietState>{String(statusCode ?? words.noAnswer)}</QuietState>
  ) : (
    <span className="text-sm font-medium whitespace-nowrap text-bad tabular-nums">{statusCode ?? words.noAnswer}</span>
  )

interface OneDeliveryProps {
  webhook: string
  of: WebhookDelivery
  /** Undefined for those who may not. */
  onReplay: (() => void) | undefined
  onClose: () => void
}

export function OneDelivery({ webhook, of, onReplay, onClose }: OneDeliveryProps) {
  const [id, setId] = useState(of.id)
  const { data, error } = useQuery({
    queryKey: ['delivery', id],
    queryFn: () => get<WebhooksRetrieveDeliveryData>(`/v1/webhooks/${webhook}/deliveries/${id}`),
  })
  return (
    <Dialog wide title={data ? words.deliveryOf(data.event, data.attempt) : words.delivery} onClose={onClose}>
      <Problem error={error} />
      {!data && !error && <Skeleton lines={6} />}
      {data && (
        <>
          <p className="mb-4 flex flex-wrap items-center gap-x-2 text-xs text-soft">
            <Answer of={data} />
            <Time at={data.timestamp} exact /> · {texts.ms(data.response.duration)} · {data.url}
            <MessageLink event={data.event} payload={data.request.payload} />
            {data.nextAttemptAt && (
              <span>
                · {words.nextAttempt} <Time at={data.nextAttemptAt} exact />
              </span>
            )}
          </p>
          <Attempts webhook={webhook} eventId={of.eventId} id={id} onChange={setId} />
          {data.contentHidden ? (
            <HiddenContent />
          ) : (
            <div className="grid gap-4 md:grid-cols-2 [&>*]:min-w-0">
              <Labelled title={words.request} text={JSON.stringify(data.request.payload, null, 2)} />
              <Labelled title={words.response} text={data.response.body ?? data.response.error ?? words.noAnswer} />
            </div>
          )}
          <details className="mt-3">
            <summary className="w-fit text-xs text-accent">{words.headers}</summary>
            <Pre label={words.headers}>
              {Object.entries(data.request.headers)
                .map(([name, value]) => `${name}: ${value}`)
                .join('\n')}
            </Pre>
          </details>
        </>
      )}
      <div className="mt-4 flex justify-end gap-2">
        {onReplay && <Button onClick={onReplay}>{words.replay}</Button>}
        <Button onClick={onClose}>{texts.actions.close}</Button>
      </div>
    </Dialog>
  )
}

const exactly = zonedFormat({ dateStyle: 'medium', timeStyle: 'short' })

interface AttemptsProps {
  webhook: string
  eventId: string
  id: string
  onChange: (id: string) => void
}

/** All attempts of the event, if there are several. */
function Attempts({ webhook, eventId, id, onChange }: AttemptsProps) {
  const path = withQuery(`/v1/webhooks/${webhook}/deliveries`, { eventId, perPage: maxAttempts })
  const { data } = useQuery({ queryKey: ['deliveries', path], queryFn: () => getPage<WebhookDelivery>(path) })
  if (!data || data.items.length < 2) return null
  return (
    <div className="mb-4 md:w-80">
      <Select
        label={words.attempts}
        value={id}
        onChange={onChange}
        choices={data.items.map((one) => ({
          value: one.id,
          label: words.attemptWas(one.attempt, String(one.statusCode ?? words.noAnswer), exactly(new Date(one.timestamp))),
        }))}
      />
    </div>
  )
}

const Labelled = ({ title, text }: { title: string; text: string }) => (
  <div>
    <h3 className="mb-1 flex items-center justify-between text-sm font-medium">
      {title} <CopyIconButton text={text} label={texts.actions.copyOf(title)} />
    </h3>
    <JsonText label={title}>{text}</JsonText>
  </div>
)

/** The email or the received message that the event is about, if its payload names one. The page of a received message is of one tenant. */
function MessageLink({ event, payload }: { event: string; payload: Record<string, unknown> }) {
  const { member, choose } = useHere()
  const id = /"(?:id|emailId)":"([0-9A-Za-z]{22})"/.exec(JSON.stringify(payload))?.[1]
  if (id === undefined) return null
  const isReceived = event === 'MessageReceived'
  const tenantId = payload['tenant_id']
  const chooseTenant = () => {
    if (isReceived && member.tenantId === null && typeof tenantId === 'string') choose(tenantId)
  }
  return (
    <Link to={(isReceived ? `/mail-in/${id}` : `/emails/${id}`) as '/'} search={{}} onClick={chooseTenant} className="link">
      {isReceived ? words.receivedMessage : words.email}
    </Link>
  )
}
