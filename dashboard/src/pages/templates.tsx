/** Templates: the list, and a new one. */
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { post } from '../api-client.ts'
import type { TemplatesCreateData, TemplatesListItem } from '../api-types.ts'
import { FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Heading } from '../parts/basic-components.tsx'
import type { Column } from '../parts/data-table.tsx'
import { Field } from '../parts/form-controls.tsx'
import { Listing, RowLink, useList } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.templates

export function TemplatesPage() {
  const { scoped, mayChange, tenantId } = useHere()
  const [adding, setAdding] = useState(false)
  const [filters] = useFilters()
  const list = useList<TemplatesListItem>('templates', scoped('/v1/templates', { page: filters.page, perPage: 50 }))
  return (
    <>
      <Heading title={texts.pages.templates} about={tenantId === undefined ? words.ofDefault : words.about}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      <Listing label={texts.pages.templates} list={list} columns={columns} keyOf={(one) => one.id} empty={words.empty} />
      {adding && <CreateTemplate onClose={() => setAdding(false)} />}
    </>
  )
}

const columns: readonly Column<TemplatesListItem>[] = [
  {
    name: words.names.name,
    phone: 'title',
    by: (one) => one.name,
    cell: (one) => <RowLink to={`/templates/${encodeURIComponent(one.id)}`}>{one.name}</RowLink>,
  },
  {
    name: words.names.version,
    phone: 'side',
    cell: (one) =>
      one.publishedVersion === null ? (
        <Badge tone="wait">{words.draft}</Badge>
      ) : (
        <Badge tone="good">{words.version(one.publishedVersion)}</Badge>
      ),
  },
  { name: words.names.subject, className: 'max-w-96 [overflow-wrap:anywhere]', cell: (one) => one.subject },
  { name: words.names.updated, className: 'text-soft', by: (one) => one.updatedAt, cell: (one) => <Time at={one.updatedAt} /> },
]

function CreateTemplate({ onClose }: { onClose: () => void }) {
  const { inBody } = useHere()
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [subject, setSubject] = useState('')
  return (
    <FormDialog
      title={words.addTitle}
      action={words.addAction}
      run={() =>
        post<TemplatesCreateData>('/v1/templates', { name, subject, html: words.firstHtml, variables: words.firstVariables, ...inBody })
      }
      onDone={async ({ id }) => navigate({ to: `/templates/${encodeURIComponent(id)}` as '/' })}
      onClose={onClose}
    >
      <Field
        label={words.names.name}
        required
        pattern="[a-z][a-z0-9\-]{0,63}"
        help={words.nameHelp}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Field label={words.names.subject} required maxLength={998} value={subject} onChange={(event) => setSubject(event.target.value)} />
    </FormDialog>
  )
}
