/** One template: the source of its draft with a preview beside it (below it on a narrow screen), a test send, and publishing. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, patch, post, remove } from '../api-client.ts'
import type { TemplatesCreateData, TemplatesPreviewData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Heading, Problem, Section } from '../parts/basic-components.tsx'
import { Field, TextArea } from '../parts/form-controls.tsx'
import { BackTo, Waiting } from '../parts/paged-lists.tsx'
import { useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.templates

export function TemplatePage() {
  const id = useParam('templateId')
  const { scoped } = useHere()
  const { data, error } = useQuery({
    queryKey: ['template', id],
    queryFn: () => get<TemplatesCreateData>(scoped(`/v1/templates/${encodeURIComponent(id)}`)),
    // The fields hold the source while it is edited.
    refetchOnWindowFocus: false,
  })
  if (!data) return <Waiting error={error} />
  return <Template template={data} />
}

interface Draft {
  subject: string
  html: string
  text: string
  variables: string
}

const draftOf = ({ subject, html, text, variables }: TemplatesCreateData): Draft => ({
  subject,
  html: html ?? '',
  text: text ?? '',
  variables: JSON.stringify(variables, null, 2),
})

/** Throws words for the person if the text is not a JSON object. */
function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text.trim() === '' ? '{}' : text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new Error(words.notJson)
}

const bodyOf = ({ subject, html, text, variables }: Draft) => ({
  subject,
  html: html === '' ? null : html,
  text: text === '' ? null : text,
  variables: objectIn(variables),
})

type Asked = 'test' | 'remove'

/** Long because the actions of the page share the draft. */
function Template({ template }: { template: TemplatesCreateData }) {
  const { scoped, mayChange } = useHere()
  const client = useQueryClient()
  const navigate = useNavigate()
  const path = `/v1/templates/${encodeURIComponent(template.id)}`
  const [draft, setDraft] = useState(draftOf(template))
  const [values, setValues] = useState('{}')
  const [asked, setAsked] = useState<Asked>()
  const show = (changed: TemplatesCreateData) => client.setQueryData(['template', template.id], changed)
  const isChanged = JSON.stringify(draft) !== JSON.stringify(draftOf(template))
  const saveIfChanged = async () => {
    if (isChanged && mayChange) show(await patch<TemplatesCreateData>(scoped(path), bodyOf(draft)))
  }
  const save = useMutation({ mutationFn: saveIfChanged })
  const publish = useMutation({
    mutationFn: async () => {
      await saveIfChanged()
      show(await post<TemplatesCreateData>(scoped(`${path}/publish`)))
    },
  })
  return (
    <>
      <BackTo to="/templates">{texts.pages.templates}</BackTo>
      <Heading
        title={template.name}
        beside={<Badge tone={template.publishedVersion === null ? 'wait' : 'good'}>{versionOf(template)}</Badge>}
      >
        {mayChange && (
          <>
            <Button disabled={!isChanged || save.isPending} onClick={() => save.mutate()}>
              {words.save}
            </Button>
            <Button onClick={() => setAsked('test')}>{words.test}</Button>
            <Button kind="danger" onClick={() => setAsked('remove')}>
              {texts.actions.remove}
            </Button>
            <Button kind="main" disabled={publish.isPending} onClick={() => publish.mutate()}>
              {words.publish}
            </Button>
          </>
        )}
      </Heading>
      <Problem error={save.error ?? publish.error} />
      <div className="-mt-5 grid gap-x-6 xl:grid-cols-2 [&>*]:min-w-0">
        <Section title={words.source}>
          <Source draft={draft} onChange={setDraft} isReadOnly={!mayChange} />
        </Section>
        <Preview template={template} values={values} onValues={setValues} before={saveIfChanged} />
      </div>
      {asked === 'test' && (
        <TestSend
          run={async (body) => {
            await saveIfChanged()
            await post(scoped(`${path}/test`), { ...body, variables: objectIn(values) })
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
      {asked === 'remove' && (
        <Confirm
          title={words.removeTitle(template.name)}
          text={words.removeText}
          action={texts.actions.remove}
          run={() => remove(scoped(path))}
          onDone={() => navigate({ to: '/templates' as '/' })}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

const versionOf = ({ publishedVersion }: TemplatesCreateData) => (publishedVersion === null ? words.draft : words.version(publishedVersion))

function Source({ draft, onChange, isReadOnly }: { draft: Draft; onChange: (draft: Draft) => void; isReadOnly: boolean }) {
  const field = (name: keyof Draft) => ({
    value: draft[name],
    readOnly: isReadOnly,
    onChange: ({ target }: { target: { value: string } }) => onChange({ ...draft, [name]: target.value }),
  })
  return (
    <div className="flex flex-col gap-4">
      <Field label={words.names.subject} maxLength={998} {...field('subject')} />
      <TextArea label={words.html} rows={14} {...field('html')} />
      <TextArea label={words.text} help={words.textHelp} rows={5} {...field('text')} />
      <TextArea label={words.variables} help={words.variablesHelp} rows={6} {...field('variables')} />
    </div>
  )
}

interface PreviewProps {
  template: TemplatesCreateData
  values: string
  onValues: (values: string) => void
  before: () => Promise<void>
}

function Preview({ template, values, onValues, before }: PreviewProps) {
  const { scoped } = useHere()
  const [shown, setShown] = useState(0)
  const render = useMutation({
    mutationFn: async () => {
      await before()
      const variables = objectIn(values)
      const made = await post<TemplatesPreviewData>(scoped(`/v1/templates/${encodeURIComponent(template.id)}/preview`), { variables })
      setShown((count) => count + 1)
      return { subject: made.subject, variables: JSON.stringify(variables) }
    },
  })
  return (
    <Section title={words.preview}>
      <div className="flex flex-col gap-3">
        <TextArea label={words.values} help={words.valuesHelp} rows={4} value={values} onChange={({ target }) => onValues(target.value)} />
        <div>
          <Button disabled={render.isPending} onClick={() => render.mutate()}>
            {words.show}
          </Button>
        </div>
        <Problem error={render.error} />
        {render.data && (
          <>
            <p className="text-sm">
              <span className="text-soft">{words.names.subject}:</span> {render.data.subject}
            </p>
            <iframe
              key={shown}
              title={words.frame}
              sandbox=""
              referrerPolicy="no-referrer"
              src={scoped(`/dashboard/api/templates/${encodeURIComponent(template.id)}/preview`, { variables: render.data.variables })}
              onLoad={({ currentTarget }) => currentTarget.scrollIntoView({ block: 'nearest' })}
              className="h-[32rem] w-full rounded-md border border-line bg-white"
            />
          </>
        )}
      </div>
    </Section>
  )
}

function TestSend({ run, onClose }: { run: (body: { from: string; to: string[] }) => Promise<void>; onClose: () => void }) {
  const { member } = useHere()
  const [from, setFrom] = useState('')
  const [to, setTo] = useState(member.address)
  return (
    <FormDialog title={words.testTitle} action={words.testAction} run={() => run({ from, to: [to] })} onDone={onClose} onClose={onClose}>
      <Field label={words.from} required help={words.fromHelp} value={from} onChange={(event) => setFrom(event.target.value)} />
      <Field label={words.to} required type="email" value={to} onChange={(event) => setTo(event.target.value)} />
    </FormDialog>
  )
}
