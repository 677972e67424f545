/** One webhook: its secret, a test request, deliveries and replay. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, patch, post, remove } from '../api-client.ts'
import {
  type Webhook,
  type WebhookDelivery,
  type WebhooksRetrieveDeliveryData,
  type WebhooksTestData,
  webhookEvents,
} from '../api-types.ts'
import { Confirm } from '../parts/action-dialogs.tsx'
import { Badge, Button, Code, Copy, Dialog, Heading, Pre, Problem, Section, Select, Time } from '../parts/basic-components.tsx'
import { BackTo, Listing, useList, Waiting } from '../parts/paged-lists.tsx'
import { useFilters, useParam } from '../parts/url-params.ts'
import { WebhookBadge, WebhookState } from '../parts/webhook-state.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.webhook
const lookEveryMs = 10_000

export function WebhookPage() {
  const id = useParam('webhookId')
  const { mayChange } = useHere()
  const client = useQueryClient()
  const navigate = useNavigate()
  const [secret, setSecret] = useState<string>()
  const [removing, setRemoving] = useState(false)
  const key = ['webhook', id]
  const { data: webhook, error } = useQuery({
    queryKey: key,
    queryFn: () => get<Webhook>(`/v1/webhooks/${id}`),
    refetchInterval: lookEveryMs,
  })
  const reveal = useMutation({
    mutationFn: () => get<Webhook>(`/v1/webhooks/${id}?reveal=true`),
    onSuccess: (shown) => setSecret(shown.secret),
  })
  const toggle = useMutation({
    mutationFn: (enabled: boolean) => patch<Webhook>(`/v1/webhooks/${id}`, { enabled }),
    onSuccess: () => client.invalidateQueries({ queryKey: key }),
  })
  if (!webhook) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/webhooks">{texts.pages.webhooks}</BackTo>
      <Heading title={webhook.name}>
        <WebhookBadge webhook={webhook} />
        {mayChange && <Button onClick={() => toggle.mutate(!webhook.enabled)}>{webhook.enabled ? words.switchOff : words.switchOn}</Button>}
        {mayChange && <Button onClick={() => reveal.mutate()}>{words.showSecret}</Button>}
        {mayChange && (
          <Button kind="danger" onClick={() => setRemoving(true)}>
            {texts.actions.remove}
          </Button>
        )}
      </Heading>
      <Problem error={error ?? toggle.error ?? reveal.error} />
      <Summary webhook={webhook} />
      {secret && (
        <div className="mt-3 flex flex-wrap items-center gap-2">
          <Code>{secret}</Code>
          <Copy text={secret} label={words.copySecret} />
        </div>
      )}
      {mayChange && <TestRequest id={id} />}
      <Deliveries id={id} mayChange={mayChange} />
      {removing && (
        <Confirm
          title={texts.actions.removeTitle(webhook.name)}
          text={words.removeText}
          action={texts.actions.remove}
          run={() => remove(`/v1/webhooks/${id}`)}
          onDone={() => navigate({ to: '/webhooks', search: {} })}
          onClose={() => setRemoving(false)}
        />
      )}
    </>
  )
}

const Summary = ({ webhook }: { webhook: Webhook }) => (
  <>
    <Code>{webhook.url}</Code>
    <p className="mt-2 text-sm empty:hidden">
      <WebhookState webhook={webhook} />
    </p>
    <p className="mt-2 text-sm text-soft">{webhook.allEvents ? words.allEvents : webhook.events.join(', ')}</p>
  </>
)

/** Sends a sample event and shows the response. */
function TestRequest({ id }: { id: string }) {
  const [event, setEvent] = useState<string>('MessageSent')
  const test = useMutation({ mutationFn: () => post<WebhooksTestData>(`/v1/webhooks/${id}/test`, { event }) })
  return (
    <Section title={words.test}>
      <div className="flex flex-wrap items-end gap-2">
        <Select label={words.event} value={event} onChange={setEvent} choices={webhookEvents.map((value) => ({ value, label: value }))} />
        <Button kind="main" disabled={test.isPending} onClick={() => test.mutate()}>
          {words.sample}
        </Button>
      </div>
      <div aria-live="polite" className="mt-2 text-sm">
        <Problem error={test.error} />
        {test.data && (
          <p>
            <Badge tone={test.data.success ? 'good' : 'bad'}>{test.data.statusCode ?? words.noAnswer}</Badge>{' '}
            {texts.ms(test.data.durationMs)} {test.data.error}
          </p>
        )}
      </div>
    </Section>
  )
}

function Deliveries({ id, mayChange }: { id: string; mayChange: boolean }) {
  const [filters] = useFilters()
  const [shown, setShown] = useState<string>()
  const client = useQueryClient()
  const list = useList<WebhookDelivery>('deliveries', `/v1/webhooks/${id}/deliveries?page=${filters.page ?? 1}`, 5000)
  const replay = useMutation({
    mutationFn: (delivery: string) => post(`/v1/webhooks/${id}/deliveries/${delivery}/replay`),
    onSettled: () => client.invalidateQueries({ queryKey: ['deliveries'] }),
  })
  return (
    <Section title={words.deliveries}>
      <Listing
        label={words.deliveries}
        list={list}
        error={replay.error}
        columns={words.columns}
        empty={words.empty}
        row={(one) => (
          <tr key={one.id}>
            <td>
              <Time at={one.timestamp} />
            </td>
            <td>{one.event}</td>
            <td>{one.attempt}</td>
            <td>
              <Badge tone={one.success ? 'good' : one.willRetry ? 'wait' : 'bad'}>{one.statusCode ?? words.noAnswer}</Badge>
            </td>
            <td className="flex justify-end gap-2">
              <Button onClick={() => setShown(one.id)}>{words.look}</Button>
              {mayChange && (
                <Button disabled={replay.isPending} onClick={() => replay.mutate(one.id)}>
                  {words.replay}
                </Button>
              )}
            </td>
          </tr>
        )}
      />
      {shown && <OneDelivery webhook={id} id={shown} onClose={() => setShown(undefined)} />}
    </Section>
  )
}

function OneDelivery({ webhook, id, onClose }: { webhook: string; id: string; onClose: () => void }) {
  const { data, error } = useQuery({
    queryKey: ['delivery', id],
    queryFn: () => get<WebhooksRetrieveDeliveryData>(`/v1/webhooks/${webhook}/deliveries/${id}`),
  })
  return (
    <Dialog title={words.delivery} onClose={onClose}>
      <Problem error={error} />
      {data && (
        <div className="flex flex-col gap-3">
          <Pre label={words.request}>{JSON.stringify(data.request, null, 2)}</Pre>
          <Pre label={words.response}>{JSON.stringify(data.response, null, 2)}</Pre>
        </div>
      )}
      <div className="mt-4 flex justify-end">
        <Button onClick={onClose}>{texts.actions.close}</Button>
      </div>
    </Dialog>
  )
}
