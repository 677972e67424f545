/**
 * A small picture of a template in a list, because people know a template by its looks: the draft, rendered with its defaults, in a frame that
 * cannot run scripts. A draft that cannot be rendered has none.
 */
import { useQuery } from '@tanstack/react-query'
import { get, post } from '../api-client.ts'
import type { RenderedTemplateResponse, TemplatesCreateData, TemplatesListItem } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { Rendered } from './template-preview.tsx'

type Declared = TemplatesCreateData['variables'][string]
const examples = { string: '', number: 1, boolean: true, array: [], object: {} } as const

/** Values for the variables without a default: a text is its own name. */
const valueOf = (name: string, { type, default: usual }: Declared) => usual ?? (type === 'string' ? name : examples[type])

/** The form of a source that can be rendered. */
async function sourceIn(path: string): Promise<string | null> {
  const { subject, html, text, variables } = await get<TemplatesCreateData>(path)
  const values = Object.fromEntries(Object.entries(variables).map(([name, one]) => [name, valueOf(name, one)]))
  const source = { subject, html, text, variables, values }
  const { fault } = await post<RenderedTemplateResponse>('/dashboard/api/templates/render', source)
  return fault === null ? JSON.stringify(source) : null
}

export function TemplateThumbnail({ of: template }: { of: TemplatesListItem }) {
  const { scoped } = useHere()
  const path = scoped(`/v1/templates/${encodeURIComponent(template.id)}`)
  const { data } = useQuery({
    queryKey: ['template-thumbnail', path, template.updatedAt],
    queryFn: () => sourceIn(path),
    retry: false,
    refetchOnWindowFocus: false,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <span
      aria-hidden="true"
      className="relative block h-12 w-[4.5rem] shrink-0 overflow-hidden rounded-[5px] border border-line bg-white max-md:hidden"
    >
      {data && (
        <Rendered
          source={data}
          isInert
          look={{
            style: { colorScheme: 'light' },
            className: 'pointer-events-none absolute top-0 left-0 h-40 w-60 origin-top-left scale-[0.3]',
          }}
        />
      )}
    </span>
  )
}
