/** The rows of templates: a draft, and published versions that never change. */
import { Refusal, rejectUnstorableText, sanitiseJson, wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { checkVariables, type Variables } from './variables.ts'

/** The text of a template; null: the message has no such part. */
export interface TemplateSource {
  subject: string
  html: string | null
  text: string | null
  variables: Variables
}

/** A template with its draft. */
export interface Template extends TemplateSource {
  id: string
  tenantId: string
  name: string
  /** null: only a draft. */
  publishedVersion: number | null
  createdAt: Date
  updatedAt: Date
}

/** A template without the texts and variables of its draft. */
export type TemplateSummary = Omit<Template, 'html' | 'text' | 'variables'>

interface TemplateVersion extends TemplateSource {
  version: number
  publishedAt: Date
}

/** Of a page: a version that is truncated lacks its texts and variables. */
export type ListedVersion = TemplateVersion & { truncated: boolean }

export interface TemplatePage {
  number: number
  size: number
}

const maxTemplates = 1000
const keptVersions = 100
const maxSourceLength = 262_144
const nameForm = /^[a-z][a-z0-9-]{0,63}$/

const summaryColumns = sql.part`
  id, tenant_id as "tenantId", name, subject, published_version as "publishedVersion", created_at as "createdAt", updated_at as "updatedAt"`

const columns = sql.part`
  ${summaryColumns}, html, text, variables`

/** Ids have an underscore, which names cannot have. */
const isThis = sql.part`tenant_id = $1 and (id = $2 or name = $2)`

const insertTemplate = sql<Template>`
  insert into templates (tenant_id, id, name, subject, html, text, variables, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7::jsonb, $8::timestamptz, $8)
  on conflict (tenant_id, name) do nothing
  returning ${columns}`

const countTemplates = sql<{ total: number }>`
  select count(*) as total
  from templates
  where tenant_id = $1`

const pageOfTemplates = sql<TemplateSummary>`
  select ${summaryColumns}
  from templates
  where tenant_id = $1
  order by name
  limit $2 offset $3`

const templateById = sql<Template>`
  select ${columns}
  from templates
  where ${isThis}`

const lockTemplate = sql<Template>`
  select ${columns}
  from templates
  where ${isThis}
  for update`

const nameIsTaken = sql<{ taken: boolean }>`
  select exists (select from templates where tenant_id = $1 and name = $2 and id <> $3) as taken`

const saveDraft = sql<Template>`
  update templates
  set name = $3, subject = $4, html = $5, text = $6, variables = $7::jsonb, updated_at = $8
  where tenant_id = $1 and id = $2
  returning ${columns}`

const publishDraft = sql<Template>`
  with published as (
    update templates
    set last_version = last_version + 1, published_version = last_version + 1, updated_at = $3
    where ${isThis}
    returning *
  ),
  version as (
    insert into template_versions (tenant_id, template_id, version, subject, html, text, variables, published_at)
    select tenant_id, id, published_version, subject, html, text, variables, $3
    from published
  )
  select ${columns}
  from published`

const dropOldVersions = sql`
  delete from template_versions
  where tenant_id = $1 and template_id = $2 and version <= $3`

const countVersions = sql<{ total: number }>`
  select count(*) as total
  from template_versions
  where tenant_id = $1 and template_id = $2`

/** Of all versions on a page together; the first one is always complete. */
const maxPageLength = 4_000_000

const pageOfVersions = sql<ListedVersion>`
  select version, subject, case when fits then html end as html, case when fits then text end as text,
         case when fits then variables else '{}' end as variables, published_at as "publishedAt", not fits as truncated
  from (
    select *, row_number() over newest = 1
      or sum(length(coalesce(html, '')) + length(coalesce(text, '')) + length(variables::text)) over newest <= $5 as fits
    from (
      select *
      from template_versions
      where tenant_id = $1 and template_id = $2
      order by version desc
      limit $3 offset $4
    ) as page
    window newest as (order by version desc)
  ) as measured
  order by version desc`

/** $3: a version; null: the published one. */
const versionOf = sql<{ templateId: string; isPublished: boolean; found: TemplateVersion | null }>`
  select templates.id as "templateId", published_version is not null as "isPublished",
         case when version.version is not null then jsonb_build_object('version', version.version, 'subject', version.subject,
           'html', version.html, 'text', version.text, 'variables', version.variables) end as found
  from templates
  left join template_versions as version
    on version.tenant_id = templates.tenant_id and version.template_id = templates.id
      and version.version = coalesce($3::integer, templates.published_version)
  where templates.tenant_id = $1 and (templates.id = $2 or templates.name = $2)`

const removeTemplate = sql`
  delete from templates
  where ${isThis}`

const removeAll = sql`
  delete from templates
  where tenant_id = $1`

const noSuchTemplate = (key: string) =>
  new Refusal('not_found', { field: 'templateId', message: `templateId: no such template: ${key.slice(0, 64)}` })

function checkName(name: string): void {
  if (!nameForm.test(name)) throw wrongField('name', 'must be 1 to 64 lower-case letters, digits and -, and begin with a letter')
}

/** Refuses `validation_error`. Whether it is a template of Liquid is checked elsewhere. */
export function checkSource({ subject, html, text, variables }: TemplateSource): void {
  for (const [field, part] of Object.entries({ subject, html, text })) {
    if (part === null) continue
    rejectUnstorableText(field, part)
    if (part.length > maxSourceLength) throw wrongField(field, `has more than ${maxSourceLength} characters`)
  }
  if (subject.trim() === '') throw wrongField('subject', 'must not be empty')
  if (html === null && text === null) throw wrongField('html', 'or text is required')
  checkVariables(variables)
}

const nameTaken = () =>
  wrongField('name', 'is the name of another template of this tenant', 'validation_error', 'Choose another name, or update that template')

/** Refuses `validation_error`: a wrong or taken name, too many templates. */
export async function insertDraft(
  tx: Tx,
  id: string,
  of: { tenantId: string; name: string },
  source: TemplateSource,
  at: Date,
): Promise<Template> {
  checkName(of.name)
  checkSource(source)
  const { total } = (await tx.first(countTemplates, [of.tenantId])) ?? { total: 0 }
  if (total >= maxTemplates) throw wrongField('name', `cannot be added: the tenant has ${maxTemplates} templates`)
  const made = await tx.first(insertTemplate, [of.tenantId, id, of.name, ...sourceRow(source), at])
  if (!made) throw nameTaken()
  return made
}

const sourceRow = ({ subject, html, text, variables }: TemplateSource) => [subject, html, text, sanitiseJson(variables)]

/** An id or a name; other text may not even be storable. */
function known(key: string): string {
  if (!/^[\w-]{1,80}$/.test(key)) throw noSuchTemplate(key)
  return key
}

/** Refuses `not_found`. `key`: the id or the name. */
export async function getTemplate(on: Queryable, tenantId: string, key: string): Promise<Template> {
  const found = await on.first(templateById, [tenantId, known(key)])
  if (!found) throw noSuchTemplate(key)
  return found
}

/** Sorted by name. */
export async function listTemplates(
  on: Queryable,
  tenantId: string,
  page: TemplatePage,
): Promise<{ templates: TemplateSummary[]; total: number }> {
  const counted = await on.first(countTemplates, [tenantId])
  const templates = await on.rows(pageOfTemplates, [tenantId, page.size, (page.number - 1) * page.size])
  return { templates, total: counted?.total ?? 0 }
}

export type DraftChanges = { [Name in keyof (TemplateSource & { name: string })]?: (TemplateSource & { name: string })[Name] | undefined }

/** Changes the given fields of the draft. Published versions stay. */
export async function updateDraft(tx: Tx, tenantId: string, key: string, changes: DraftChanges, at: Date): Promise<Template> {
  const before = await tx.first(lockTemplate, [tenantId, known(key)])
  if (!before) throw noSuchTemplate(key)
  const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as Partial<Template>
  const after = { ...before, ...given }
  checkName(after.name)
  checkSource(after)
  if (after.name !== before.name && (await tx.first(nameIsTaken, [tenantId, after.name, before.id]))?.taken) throw nameTaken()
  return (await tx.first(saveDraft, [tenantId, before.id, after.name, ...sourceRow(after), at])) as Template
}

/** Makes the draft a version, which sends use from then on. The last hundred versions are kept. */
export async function publish(tx: Tx, tenantId: string, key: string, at: Date): Promise<Template> {
  const published = await tx.first(publishDraft, [tenantId, known(key), at])
  if (!published) throw noSuchTemplate(key)
  await tx.run(dropOldVersions, [tenantId, published.id, (published.publishedVersion ?? 0) - keptVersions])
  return published
}

/** Newest first. */
export async function listTemplateVersionsOf(
  on: Queryable,
  tenantId: string,
  templateId: string,
  page: TemplatePage,
): Promise<{ versions: ListedVersion[]; total: number }> {
  const counted = await on.first(countVersions, [tenantId, templateId])
  const versions = await on.rows(pageOfVersions, [tenantId, templateId, page.size, (page.number - 1) * page.size, maxPageLength])
  return { versions, total: counted?.total ?? 0 }
}

/** The published version of a template, or the given one. Refuses `not_found`, and `validation_error` without a published version. */
export async function getVersion(on: Queryable, tenantId: string, key: string, version: number | null): Promise<TemplateSource> {
  const row = await on.first(versionOf, [tenantId, known(key), version])
  if (!row) throw noSuchTemplate(key)
  if (row.found) return row.found
  if (version !== null)
    throw new Refusal('not_found', { field: 'templateVersion', message: `templateVersion: the template has no version ${version}` })
  throw wrongField('templateId', 'is the name of a template without a published version', 'validation_error', 'Publish the draft first')
}

/** Refuses `not_found`. */
export async function deleteTemplate(on: Queryable, tenantId: string, key: string): Promise<void> {
  if ((await on.run(removeTemplate, [tenantId, known(key)])) === 0) throw noSuchTemplate(key)
}

export const removeTemplatesOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(removeAll, [tenantId])
