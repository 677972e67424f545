/**
 * Facts of a template for its row in a list: a small picture, because people know a template by its looks, its placeholders, and whether its
 * draft differs from the published version. The picture is the draft, rendered with its defaults, in a frame that cannot run scripts. A draft
 * that cannot be rendered has none.
 */
import { useQuery } from '@tanstack/react-query'
import { get, getPage, post } from '../api-client.ts'
import type { RenderedTemplateResponse, TemplatesCreateData, TemplatesListItem, TemplatesListVersionsItem } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { Rendered } from './template-preview.tsx'
import { sameAsPublished } from './template-values.tsx'

type Declared = TemplatesCreateData['variables'][string]
const examples = { string: '', number: 1, boolean: true, array: [], object: {} } as const

/** Values for the variables without a default: a text is its own name. */
const valueOf = (name: string, { type, default: usual }: Declared) => usual ?? (type === 'string' ? name : examples[type])

interface Known {
  /** The names of its variables. */
  placeholders: readonly string[]
  /** The draft differs from the version that sends use. */
  isChanged: boolean
  /** The form of a source that can be rendered. */
  source: string | null
}

async function knownOf(path: string, versionsPath: string | null): Promise<Known> {
  const [template, versions] = await Promise.all([
    get<TemplatesCreateData>(path),
    versionsPath === null ? undefined : getPage<TemplatesListVersionsItem>(versionsPath),
  ])
  const { subject, html, text, variables } = template
  const values = Object.fromEntries(Object.entries(variables).map(([name, one]) => [name, valueOf(name, one)]))
  const source = { subject, html, text, variables, values }
  const { fault } = await post<RenderedTemplateResponse>('/dashboard/api/templates/render', source)
  const isChanged = template.publishedVersion !== null && versions !== undefined && !sameAsPublished(template, versions.items)
  return { placeholders: Object.keys(variables), isChanged, source: fault === null ? JSON.stringify(source) : null }
}

/** One query for all columns of a row. */
export function useKnown({ id, publishedVersion, updatedAt }: TemplatesListItem): Known | undefined {
  const { scoped } = useHere()
  const own = `/v1/templates/${encodeURIComponent(id)}`
  const path = scoped(own)
  const versions = publishedVersion === null ? null : scoped(`${own}/versions`, { perPage: 1 })
  const { data } = useQuery({
    queryKey: ['template-picture', path, updatedAt],
    queryFn: () => knownOf(path, versions),
    retry: false,
    refetchOnWindowFocus: false,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data
}

/** A page of 600 px, which is as wide as most messages, in the middle of a mat. */
export function TemplateThumbnail({ of: template }: { of: TemplatesListItem }) {
  const source = useKnown(template)?.source
  return (
    <span
      aria-hidden="true"
      className="relative block size-12 shrink-0 overflow-hidden rounded-[5px] border border-line bg-line md:h-16 md:w-24"
    >
      {source && (
        <Rendered
          source={source}
          isInert
          look={{
            style: { colorScheme: 'light', background: '#fff' },
            className:
              'pointer-events-none absolute top-1 left-1 h-[660px] w-[600px] origin-top-left scale-[0.065] md:top-1.5 md:left-[7px] md:h-[440px] md:scale-[0.133]',
          }}
        />
      )}
    </span>
  )
}
