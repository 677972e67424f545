/** An email's content in several forms. The HTML is shown in a frame that cannot run scripts, load resources or reach the page. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, octetsOf, save } from '../api-client.ts'
import type { Email } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Button, Empty, Problem, Section, Skeleton } from './basic-components.tsx'
import { HiddenContent } from './hidden-content.tsx'
import { Insights, useProblems } from './insights.tsx'
import { MessageLinks } from './message-links.tsx'
import { type MimePart, mimeTree } from './mime.ts'
import { PreviewFrame } from './preview-frame.tsx'
import { Tabs } from './tabs.tsx'
import { Pre } from './time-and-copy.tsx'

const forms = ['preview', 'text', 'html', 'headers', 'raw', 'parts', 'attachments', 'links', 'insights'] as const
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
  links: '',
  insights: '',
}

interface ContentProps {
  id: string
  /** The sender, with whose domain the signatures are compared. */
  from: string
  /** Of a test message, which has a tab for them and the number of its problems. */
  links?: readonly string[]
  /** The member's role may not see it. */
  isHidden: boolean | undefined
  /** It is all that the page shows: it needs no title, and has the height. */
  isPage?: boolean
}

export function EmailContent({ id, from, links, isHidden, isPage = false }: ContentProps) {
  const [form, setForm] = useState<Form>('preview')
  const problems = useProblems(id, links !== undefined && !isHidden)
  const counts: Partial<Record<Form, number | undefined>> = { links: links?.length, insights: problems }
  const shown = forms.filter((name) => name !== 'links' || links !== undefined)
  const tabs = shown.map((name) => ({ name, label: words.forms[name], count: counts[name] }))
  if (isHidden)
    return (
      <Section title={words.title}>
        <HiddenContent />
      </Section>
    )
  const content = (
    <Tabs label={words.form} tabs={tabs} chosen={form} onChoose={setForm}>
      {form === 'preview' && <Preview id={id} isTall={isPage} />}
      {form === 'links' && <MessageLinks id={id} links={links ?? []} />}
      {form === 'insights' && <Insights id={id} from={from} />}
      {form !== 'preview' && form !== 'links' && form !== 'insights' && <Source id={id} form={form} />}
    </Tabs>
  )
  return isPage ? <div className="mt-3">{content}</div> : <Section title={words.title}>{content}</Section>
}

const Preview = ({ id, isTall }: { id: string; isTall: boolean }) => (
  <PreviewFrame note={words.inert} height={isTall ? 'page' : 'low'}>
    {(look) => (
      <iframe
        title={words.page}
        sandbox=""
        referrerPolicy="no-referrer"
        src={`/dashboard/api/emails/${encodeURIComponent(id)}/preview`}
        {...look}
      />
    )}
  </PreviewFrame>
)

type SourceForm = Exclude<Form, 'preview' | 'links' | 'insights'>

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
