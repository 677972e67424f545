/** An email's content in several forms. The HTML is shown in a frame that cannot run scripts, load resources or reach the page. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, octetsOf, save } from '../api-client.ts'
import type { Email } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Button, Empty, Problem, Section, Skeleton } from './basic-components.tsx'
import { HiddenContent } from './hidden-content.tsx'
import { Insights } from './insights.tsx'
import { type MimePart, mimeTree } from './mime.ts'
import { Tabs } from './tabs.tsx'
import { Pre } from './time-and-copy.tsx'

const forms = ['preview', 'text', 'html', 'headers', 'raw', 'parts', 'attachments', 'insights'] as const
type Form = (typeof forms)[number]
const words = texts.content
const expansions: Record<Form, string> = {
  preview: '',
  text: 'content',
  html: 'content',
  headers: 'headers',
  raw: 'raw',
  parts: 'raw',
  attachments: 'attachments',
  insights: '',
}

/** `from`: the sender, which the insights compare with the links. */
export function EmailContent({ id, from, isHidden }: { id: string; from: string; isHidden: boolean | undefined }) {
  const [form, setForm] = useState<Form>('preview')
  if (isHidden)
    return (
      <Section title={words.title}>
        <HiddenContent />
      </Section>
    )
  return (
    <Section title={words.title}>
      <Tabs label={words.form} tabs={forms.map((name) => ({ name, label: words.forms[name] }))} chosen={form} onChoose={setForm}>
        {form === 'preview' && <Preview id={id} />}
        {form === 'insights' && <Insights id={id} from={from} />}
        {form !== 'preview' && form !== 'insights' && <Source id={id} form={form} />}
      </Tabs>
    </Section>
  )
}

const widths = { full: 'w-full', tablet: 'w-[768px] max-w-full', phone: 'w-[375px] max-w-full' } as const

function Preview({ id }: { id: string }) {
  const [width, setWidth] = useState<keyof typeof widths>('full')
  const [isDark, setIsDark] = useState(false)
  return (
    <>
      <p className="mb-2 flex flex-wrap items-center gap-2 text-sm text-soft">
        <span role="group" aria-label={words.width} className="flex gap-1">
          {(Object.keys(widths) as (keyof typeof widths)[]).map((name) => (
            <Button
              key={name}
              small
              aria-pressed={name === width}
              className="aria-pressed:border-ink aria-pressed:text-ink"
              onClick={() => setWidth(name)}
            >
              {words.widths[name]}
            </Button>
          ))}
        </span>
        <Button small aria-pressed={isDark} onClick={() => setIsDark(!isDark)}>
          {isDark ? words.onLight : words.onDark}
        </Button>
        {words.inert}
      </p>
      <iframe
        title={words.page}
        sandbox=""
        referrerPolicy="no-referrer"
        src={`/dashboard/api/emails/${encodeURIComponent(id)}/preview`}
        style={{ colorScheme: isDark ? 'dark' : 'light', background: isDark ? '#111' : '#fff' }}
        className={`h-[32rem] rounded-md border border-line ${widths[width]}`}
      />
    </>
  )
}

type SourceForm = Exclude<Form, 'preview' | 'insights'>

function Source({ id, form }: { id: string; form: SourceForm }) {
  const { data, error } = useQuery({
    queryKey: ['email', id, expansions[form]],
    queryFn: () => get<Email>(`/v1/emails/${id}?expand=${expansions[form]}`),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (!data) return error ? <Problem error={error} /> : <Skeleton lines={6} />
  if (form === 'parts' && data.rawMessage !== undefined) return <Tree part={mimeTree(atob(data.rawMessage))} />
  if (form === 'attachments') return <Attachments of={data} />
  const shown: Record<Exclude<SourceForm, 'parts' | 'attachments'>, string | undefined> = {
    text: data.plainBody,
    html: data.htmlBody,
    headers:
      data.headers &&
      Object.entries(data.headers)
        .map(([name, value]) => `${name}: ${value}`)
        .join('\n'),
    raw: data.rawMessage === undefined ? undefined : new TextDecoder().decode(octetsOf(data.rawMessage)),
  }
  const text = form === 'parts' ? undefined : shown[form]
  if (!text) return <Empty>{words.none}</Empty>
  return (
    <>
      <Pre label={words.forms[form]}>{text}</Pre>
      {form === 'raw' && data.rawMessage !== undefined && (
        <Button className="mt-2" onClick={() => save(`${id}.eml`, new Blob([octetsOf(data.rawMessage ?? '')], { type: 'message/rfc822' }))}>
          {texts.actions.download}
        </Button>
      )}
    </>
  )
}

const Tree = ({ part }: { part: MimePart }) => (
  <ul className="border-l-2 border-line pl-3 text-sm">
    <li className="py-1">
      <span className="font-medium">{part.type}</span> <span className="text-soft">{words.octets(part.octets.toLocaleString())}</span>
      {part.about && <span className="block text-soft [overflow-wrap:anywhere]">{part.about}</span>}
      {part.parts.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a message have no names and never move
        <Tree key={index} part={one} />
      ))}
    </li>
  </ul>
)

function Attachments({ of: { attachments = [] } }: { of: Email }) {
  if (attachments.length === 0) return <Empty>{words.noAttachments}</Empty>
  return (
    <ul className="flex flex-col gap-2 text-sm">
      {attachments.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attachments may share a name, and never move
        <li key={index} className="flex flex-wrap items-center gap-3">
          <span className="font-medium [overflow-wrap:anywhere]">{one.filename}</span>
          <span className="text-soft">
            {one.contentType}, {words.octets(one.size.toLocaleString())}
          </span>
          <Button onClick={() => save(one.filename, new Blob([octetsOf(one.data)], { type: 'application/octet-stream' }))}>
            {texts.actions.download}
          </Button>
        </li>
      ))}
    </ul>
  )
}
