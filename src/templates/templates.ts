/**
 * Templates: stored messages with variables, rendered before acceptance. Each has a draft and published versions.
 * Owns: templates, template_versions. Uses: base, db, tenants. Used by: housekeeping, http.
 * Promises: a published version never changes; a template runs no code, reads no file and escapes values in HTML; rendering takes at most
 * 50 ms of processor time and makes at most 5 MB, in a child process, in turns between tenants.
 */
import { type Clock, cached, type Ids } from '#base'
import type { Db } from '#db'
import { tenantForNew } from '#tenants'
import type { Rendered } from './liquid.ts'
import { openRenderer } from './renderer.ts'
import {
  checkSource,
  type DraftChanges,
  deleteTemplate,
  getTemplate,
  getVersion,
  insertDraft,
  type ListedVersion,
  listTemplates,
  listTemplateVersionsOf,
  publish,
  type Template,
  type TemplatePage,
  type TemplateSource,
  type TemplateSummary,
  updateDraft,
} from './template-records.ts'
import { completeValues, type Values } from './variables.ts'

export type { Rendered } from './liquid.ts'
export {
  type ListedVersion,
  removeTemplatesOfTenant,
  type Template,
  type TemplateSource,
  type TemplateSummary,
} from './template-records.ts'
export { type Values, type Variable, variableTypes } from './variables.ts'

/** `key`: the id or the name of a template. All refuse `not_found` and `validation_error`. */
export interface Templates {
  create(tenantId: string, name: string, source: TemplateSource): Promise<Template>
  list(tenantId: string, page: TemplatePage): Promise<{ templates: TemplateSummary[]; total: number }>
  get(tenantId: string, key: string): Promise<Template>
  /** Changes the draft. */
  update(tenantId: string, key: string, changes: DraftChanges): Promise<Template>
  publish(tenantId: string, key: string): Promise<Template>
  listVersions(tenantId: string, key: string, page: TemplatePage): Promise<{ versions: ListedVersion[]; total: number }>
  remove(tenantId: string, key: string): Promise<void>
  /** Renders the draft, or a version. */
  preview(tenantId: string, key: string, given: { version?: number | undefined; values: Values }): Promise<Rendered>
  /** Renders a source that is not stored. Those of one name take turns. */
  renderSource(whose: string, source: TemplateSource, values: Values): Promise<Rendered>
  /** Renders the published version, or another one, for a send. */
  render(tenantId: string, key: string, given: { version?: number | undefined; values: Values }): Promise<Rendered>
}

const idLength = 20
/** Of the versions that sends used within the last second. */
const maxCachedLength = 16_000_000

const lengthOfSource = ({ subject, html, text, variables }: TemplateSource) =>
  subject.length + (html?.length ?? 0) + (text?.length ?? 0) + JSON.stringify(variables).length

export function openTemplates({ db, clock, ids }: { db: Db; clock: Clock; ids: Ids }): Templates {
  const renderer = openRenderer(clock)
  const known = cached(
    clock,
    (name) => {
      const [tenantId, key, version] = JSON.parse(name) as [string, string, number | null]
      return getVersion(db, tenantId, key, version)
    },
    { lengthOf: lengthOfSource, maxLength: maxCachedLength },
  )
  const now = () => new Date(clock.nowMs())
  const made = async (tenantId: string, source: TemplateSource, values: Values) =>
    renderer.render(tenantId, source, completeValues(source.variables, values))
  const changing = async <Result>(work: Promise<Result>): Promise<Result> => {
    const result = await work
    known.clear()
    return result
  }
  return {
    async create(tenantId, name, source) {
      checkSource(source)
      await renderer.check(tenantId, source)
      const id = `tpl_${ids.token(idLength)}`
      return db.transaction(async (tx) => {
        await tenantForNew(tx, tenantId)
        return insertDraft(tx, id, { tenantId, name }, source, now())
      })
    },
    list: (tenantId, page) => listTemplates(db, tenantId, page),
    get: (tenantId, key) => getTemplate(db, tenantId, key),
    async update(tenantId, key, changes) {
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
      const source = { ...(await getTemplate(db, tenantId, key)), ...given }
      checkSource(source)
      await renderer.check(tenantId, source)
      return changing(db.transaction((tx) => updateDraft(tx, tenantId, key, given, now())))
    },
    publish: (tenantId, key) => changing(db.transaction((tx) => publish(tx, tenantId, key, now()))),
    async listVersions(tenantId, key, page) {
      const { id } = await getTemplate(db, tenantId, key)
      return listTemplateVersionsOf(db, tenantId, id, page)
    },
    remove: (tenantId, key) => changing(deleteTemplate(db, tenantId, key)),
    async preview(tenantId, key, { version, values }) {
      const source = version === undefined ? await getTemplate(db, tenantId, key) : await getVersion(db, tenantId, key, version)
      return made(tenantId, source, values)
    },
    async renderSource(whose, source, values) {
      checkSource(source)
      await renderer.check(whose, source)
      return made(whose, source, values)
    },
    async render(tenantId, key, { version, values }) {
      return made(tenantId, await known.get(JSON.stringify([tenantId, key, version ?? null])), values)
    },
  }
}
