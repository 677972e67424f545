/** One template: its source with a preview beside it (below it on a narrow screen), a test send, publishing, and its versions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useBlocker, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, getPage, patch, post } from '../api-client.ts'
import type { TemplatesCreateData, TemplatesListVersionsItem } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Button, Heading, Problem, Section } from '../parts/basic-components.tsx'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Field } from '../parts/form-controls.tsx'
import { Menu } from '../parts/menu.tsx'
import { BackTo, Waiting } from '../parts/paged-lists.tsx'
import { SourceEditor } from '../parts/source-editor.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { TemplateDialog, templateActions } from '../parts/template-actions.tsx'
import { TemplatePreview } from '../parts/template-preview.tsx'
import { type Draft, draftOf, objectIn, sameAsPublished, sourceOf } from '../parts/template-values.tsx'
import { Time, Value } from '../parts/time-and-copy.tsx'
import { toast } from '../parts/toast.tsx'
import { useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { TemplateBadge } from './templates.tsx'

const words = texts.templates

export function TemplatePage() {
  const id = useParam('templateId')
  const { scoped } = useHere()
  const { data, error } = useQuery({
    queryKey: ['template', id],
    queryFn: () => get<TemplatesCreateData>(scoped(`/v1/templates/${encodeURIComponent(id)}`)),
    // Not from an earlier visit: the source may have changed since.
    gcTime: 0,
  })
  if (!data) return <Waiting error={error} />
  return <Template key={data.id} template={data} />
}

type Opened = 'test' | 'copy' | 'remove'

/** Sends with this template; the key is a placeholder. */
const curlFor = ({ name, variables }: TemplatesCreateData) => {
  const values = Object.fromEntries(Object.entries(variables).map(([key, one]) => [key, one.default ?? '']))
  const body = JSON.stringify({ from: 'shop@example.com', to: ['ann@example.org'], templateId: name, variables: values })
  return `curl -s ${location.origin}/v1/emails -H "Authorization: Bearer $POSTRIDER_KEY" -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`
}

const copyCurl = (template: TemplatesCreateData) =>
  void navigator.clipboard.writeText(curlFor(template)).then(
    () => toast(words.curlCopied),
    () => undefined,
  )

const isSame = (one: Draft, other: Draft) => JSON.stringify(one) === JSON.stringify(other)

/** The edited source. Until a person edits it, it follows the stored one. */
function useDraft(template: TemplatesCreateData) {
  const stored = draftOf(template)
  const [edited, setEdited] = useState({ from: stored, draft: stored })
  const isEdited = !isSame(edited.draft, edited.from)
  const draft = isEdited ? edited.draft : stored
  const from = isEdited ? edited.from : stored
  const setDraft = (next: Draft) => setEdited({ from, draft: next })
  // The database writes the variables in another order; further input stays.
  const setSaved = (saved: Draft) => setEdited((now) => ({ from: saved, draft: now.draft === draft ? saved : now.draft }))
  return { draft, isChanged: isEdited && !isSame(draft, stored), setDraft, setSaved }
}

/** Long because the actions of the page share the draft. */
function Template({ template }: { template: TemplatesCreateData }) {
  const { scoped, mayChange } = useHere()
  const client = useQueryClient()
  const navigate = useNavigate()
  const path = `/v1/templates/${encodeURIComponent(template.id)}`
  const { draft, isChanged, setDraft, setSaved } = useDraft(template)
  const [values, setValues] = useState('{}')
  const [opened, setOpened] = useState<Opened>()
  const show = (changed: TemplatesCreateData) => client.setQueryData(['template', template.id], changed)
  const versions = useVersions(template.id)
  const isPublished = sameAsPublished(template, versions)
  const saveIfChanged = async () => {
    if (!isChanged || !mayChange) return
    const saved = await patch<TemplatesCreateData>(scoped(path), sourceOf(draft))
    show(saved)
    setSaved(draftOf(saved))
  }
  const save = useMutation({ mutationFn: saveIfChanged, onSuccess: () => toast(words.saved) })
  const publish = useMutation({
    mutationFn: async () => {
      await saveIfChanged()
      show(await post<TemplatesCreateData>(scoped(`${path}/publish`)))
      await client.invalidateQueries({ queryKey: ['template', template.id, 'versions'] })
    },
  })
  return (
    <>
      <BackTo to="/templates">{texts.pages.templates}</BackTo>
      <Heading
        title={template.name}
        beside={
          <>
            <TemplateBadge version={template.publishedVersion} />
            <span className="text-soft">
              <Value name={words.names.id}>{template.id}</Value>
            </span>
          </>
        }
      >
        {mayChange && (
          <>
            <Button onClick={() => setOpened('test')}>{words.test}</Button>
            <Button disabled={!isChanged || save.isPending} onClick={() => save.mutate()}>
              {words.save}
            </Button>
            <Button kind="main" disabled={publish.isPending || (isPublished && !isChanged)} onClick={() => publish.mutate()}>
              {words.publish}
            </Button>
          </>
        )}
        <Menu
          label={texts.email.moreActions}
          actions={[{ label: texts.email.curl, onChoose: () => copyCurl(template) }, ...(mayChange ? templateActions(setOpened) : [])]}
        />
      </Heading>
      <Problem error={save.error ?? publish.error} />
      <div className="-mt-5 grid gap-x-8 xl:grid-cols-2 [&>*]:min-w-0">
        <Section
          title={words.source}
          aside={<SourceState isChanged={isChanged} isPublished={isPublished} version={template.publishedVersion} />}
        >
          <Source draft={draft} onChange={setDraft} isReadOnly={!mayChange} />
        </Section>
        <TemplatePreview draft={draft} values={values} onValues={setValues} />
      </div>
      {versions.length > 0 && <Versions of={versions} />}
      {opened === 'test' && (
        <TestSend
          run={async (body) => {
            await saveIfChanged()
            await post(scoped(`${path}/test`), { ...body, variables: objectIn(values) })
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
      {(opened === 'copy' || opened === 'remove') && (
        <TemplateDialog
          of={template}
          action={opened}
          onRemoved={() => navigate({ to: '/templates' as '/', ignoreBlocker: true })}
          onClose={() => setOpened(undefined)}
        />
      )}
      <AskBeforeLeaving isChanged={isChanged && mayChange} />
    </>
  )
}

/** Before a page that would lose the draft, also before the browser leaves. */
function AskBeforeLeaving({ isChanged }: { isChanged: boolean }) {
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) => isChanged && current.pathname !== next.pathname,
    enableBeforeUnload: () => isChanged,
    withResolver: true,
  })
  if (status !== 'blocked') return null
  return (
    <Confirm
      title={words.leaveTitle}
      text={words.leaveText}
      action={words.leave}
      run={async () => proceed()}
      onDone={() => {}}
      onClose={reset}
    />
  )
}

/** How the source differs from the version that sends use. */
const SourceState = ({ isChanged, isPublished, version }: { isChanged: boolean; isPublished: boolean; version: number | null }) => (
  <span className={`text-xs ${isChanged ? 'text-wait' : 'text-soft'}`}>
    {isChanged ? words.unsaved : version === null ? words.notPublished : isPublished ? words.sameAs(version) : words.differsFrom(version)}
  </span>
)

const parts = ['html', 'text', 'variables'] as const
type Part = (typeof parts)[number]
const labels: Record<Part, string> = { html: words.html, text: words.text, variables: words.variables }
const helps: Record<Part, string> = { html: words.htmlHelp, text: words.textHelp, variables: words.variablesHelp }

function Source({ draft, onChange, isReadOnly }: { draft: Draft; onChange: (draft: Draft) => void; isReadOnly: boolean }) {
  const [part, setPart] = useState<Part>('html')
  const set = (name: keyof Draft, value: string) => onChange({ ...draft, [name]: value })
  return (
    <div className="flex flex-col gap-4">
      <Field
        label={words.names.subject}
        maxLength={998}
        value={draft.subject}
        readOnly={isReadOnly}
        onChange={({ target }) => set('subject', target.value)}
      />
      <div>
        <Tabs label={words.source} tabs={parts.map((name) => ({ name, label: labels[name] }))} chosen={part} onChoose={setPart}>
          <SourceEditor
            key={part}
            label={labels[part]}
            help={helps[part]}
            value={draft[part]}
            readOnly={isReadOnly}
            onChange={(value) => set(part, value)}
          />
        </Tabs>
      </div>
    </div>
  )
}

const versionColumns: readonly Column<TemplatesListVersionsItem>[] = [
  { name: words.names.version, phone: 'title', className: 'font-medium', cell: (one) => words.version(one.version) },
  { name: words.names.subject, phone: 'line', className: 'max-w-96 [overflow-wrap:anywhere]', cell: (one) => one.subject },
  { name: words.names.published, phone: 'side', className: 'text-soft', cell: (one) => <Time at={one.publishedAt} /> },
]

/** The newest; sends may name an older one. */
function useVersions(id: string): readonly TemplatesListVersionsItem[] {
  const { scoped } = useHere()
  const path = scoped(`/v1/templates/${encodeURIComponent(id)}/versions`, { perPage: 20 })
  const { data } = useQuery({ queryKey: ['template', id, 'versions'], queryFn: () => getPage<TemplatesListVersionsItem>(path) })
  return data?.items ?? []
}

const Versions = ({ of: versions }: { of: readonly TemplatesListVersionsItem[] }) => (
  <Section title={words.versions} about={words.versionsHelp}>
    <DataTable label={words.versions} columns={versionColumns} items={versions} keyOf={(one) => String(one.version)} />
  </Section>
)

function TestSend({ run, onClose }: { run: (body: { from: string; to: string[] }) => Promise<void>; onClose: () => void }) {
  const { member } = useHere()
  const [from, setFrom] = useState('')
  const [to, setTo] = useState(member.address)
  return (
    <FormDialog
      title={words.testTitle}
      action={words.testAction}
      run={() => run({ from, to: [to] })}
      onDone={() => {
        toast(words.tested(to))
        onClose()
      }}
      onClose={onClose}
    >
      <Field label={words.from} required help={words.fromHelp} value={from} onChange={(event) => setFrom(event.target.value)} />
      <Field label={words.to} required type="email" value={to} onChange={(event) => setTo(event.target.value)} />
    </FormDialog>
  )
}
