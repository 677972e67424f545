/** Templates of one tenant: the list with the state of each, its copy and deletion, and a new one. */
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { post } from '../api-client.ts'
import type { TemplatesCreateData, TemplatesListItem } from '../api-types.ts'
import { FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Coded, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { type Column, DataTable, Pager, TableSkeleton } from '../parts/data-table.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { Menu } from '../parts/menu.tsx'
import { RowLink, useList } from '../parts/paged-lists.tsx'
import { type TemplateAction, TemplateDialog, templateActions } from '../parts/template-actions.tsx'
import { TemplateThumbnail, useKnown } from '../parts/template-thumbnail.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { copyText } from '../parts/toast.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.templates

export function TemplatesPage() {
  const { scoped, mayChange } = useHere()
  const client = useQueryClient()
  const [opened, setOpened] = useState<{ action: TemplateAction; of: TemplatesListItem }>()
  const [adding, setAdding] = useState(false)
  const [filters, change] = useFilters()
  const { data, error } = useList<TemplatesListItem>('templates', scoped('/v1/templates', { page: filters.page, perPage: 50 }))
  const add = mayChange && (
    <Button kind="main" onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  const isEmpty = data?.items.length === 0
  return (
    <>
      <Heading title={texts.pages.templates} about={words.about}>
        <ChooseTenant />
        {!isEmpty && add}
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton />}
      {isEmpty && (
        <Empty title={words.emptyTitle} action={add}>
          <Coded>{words.empty}</Coded>
        </Empty>
      )}
      {data && !isEmpty && (
        <DataTable
          label={texts.pages.templates}
          columns={[...columns, menuColumn(mayChange ? (action, of) => setOpened({ action, of }) : undefined)]}
          items={data.items}
          keyOf={(one) => one.id}
          isWhole={data.totalPages <= 1}
        />
      )}
      {data && <Pager {...data} onPage={(page) => change({ page: String(page) })} />}
      {adding && <CreateTemplate onClose={() => setAdding(false)} />}
      {opened && (
        <TemplateDialog
          {...opened}
          onRemoved={async () => {
            setOpened(undefined)
            await client.invalidateQueries({ queryKey: ['templates'] })
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
    </>
  )
}

/** The list is of one tenant. On a phone its choice is here, because the other one is in the menu. */
function ChooseTenant() {
  const { tenants, tenantId, choose } = useHere()
  if (tenants.length <= 1) return null
  const shown = tenantId ?? tenants.find(({ isDefault }) => isDefault)?.id ?? ''
  return (
    <div className="grow lg:hidden">
      <Select
        bare
        label={words.ofTenant}
        value={shown}
        choices={tenants.map(({ id, name }) => ({ value: id, label: name }))}
        onChange={choose}
      />
    </div>
  )
}

const columns: readonly Column<TemplatesListItem>[] = [
  {
    name: words.names.name,
    phone: 'title',
    className: 'max-w-96',
    by: (one) => one.name,
    cell: (one) => (
      <span className="flex items-center gap-3">
        <TemplateThumbnail of={one} />
        <span className="min-w-0">
          <RowLink to={`/templates/${encodeURIComponent(one.id)}`}>{one.name}</RowLink>
          <span className="block text-xs text-soft [overflow-wrap:anywhere]">{one.subject}</span>
          <span className="block text-xs text-soft md:hidden">
            {words.changed} <Time at={one.updatedAt} /> <DraftChanged of={one} />
          </span>
        </span>
      </span>
    ),
  },
  {
    name: words.names.state,
    phone: 'side',
    by: (one) => one.publishedVersion ?? 0,
    cell: (one) => (
      <span className="inline-flex items-center gap-x-2">
        <TemplateBadge version={one.publishedVersion} />
        <span className="empty:hidden max-md:hidden">
          <DraftChanged of={one} />
        </span>
      </span>
    ),
  },
  {
    name: words.names.placeholders,
    phone: 'none',
    className: 'text-soft md:max-w-64',
    cell: (one) => <Placeholders of={one} />,
  },
  {
    name: words.names.updated,
    phone: 'none',
    className: 'text-soft',
    by: (one) => one.updatedAt,
    cell: (one) => <Time at={one.updatedAt} />,
  },
]

/** Without `onChoose`, for a reader. */
const menuColumn = (onChoose?: (action: TemplateAction, of: TemplatesListItem) => void): Column<TemplatesListItem> => ({
  name: texts.table.actions,
  isUnnamed: true,
  phone: 'menu',
  className: 'md:text-right',
  cell: (one) => (
    <Menu
      label={words.actionsOf(one.name)}
      actions={[
        { label: words.copyId, onChoose: () => void copyText(one.id, words.idCopied) },
        ...(onChoose ? templateActions((action) => onChoose(action, one)) : []),
      ]}
    />
  ),
})

/** Sends use the published version until the draft is published too. */
const DraftChanged = ({ of: template }: { of: TemplatesListItem }) =>
  useKnown(template)?.isChanged ? (
    <span data-tip={words.draftChangedMeans} className="text-xs whitespace-nowrap text-wait">
      {words.draftChanged}
    </span>
  ) : null

function Placeholders({ of: template }: { of: TemplatesListItem }) {
  const names = useKnown(template)?.placeholders
  if (names === undefined) return null
  if (names.length === 0) return words.noPlaceholders
  return (
    <span className="block truncate" data-tip={names.join(', ')}>
      <span className="text-ink tabular-nums">{names.length}</span> {names.join(', ')}
    </span>
  )
}

/** The version that sends use. */
export const TemplateBadge = ({ version }: { version: number | null }) =>
  version === null ? (
    <Badge tone="wait" title={words.draftMeans}>
      {words.draft}
    </Badge>
  ) : (
    <Badge tone="good" title={words.publishedMeans}>
      {words.publishedVersion(version)}
    </Badge>
  )

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
        placeholder={words.exampleName}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Field
        label={words.names.subject}
        required
        maxLength={998}
        help={words.subjectHelp}
        placeholder={words.exampleSubject}
        value={subject}
        onChange={(event) => setSubject(event.target.value)}
      />
    </FormDialog>
  )
}
