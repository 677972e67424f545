/** The person's account and two-factor authentication; for owners of the organisation also the doctor's check results and the settings in force. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { get, post } from '../api-client.ts'
import type { DoctorResponse, InstallationResponse } from '../api-types.ts'
import { Badge, Button, Coded, Heading, Problem, Rows, Section, SettingRow } from '../parts/basic-components.tsx'
import { DownIcon } from '../parts/icons.tsx'
import { Waiting } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Account } from './account.tsx'

export function SettingsPage() {
  const { member } = useHere()
  const isOwner = member.role === 'owner' && member.tenantId === null
  return (
    <>
      <Heading title={texts.pages.settings} />
      <Account />
      {isOwner ? (
        <>
          <Doctor />
          <Installation />
        </>
      ) : (
        <p className="mt-6 text-sm text-soft">{texts.installation.ownersOnly}</p>
      )}
    </>
  )
}

const tones = { ok: 'good', warning: 'wait', problem: 'bad', unknown: 'none' } as const
/** Results that need action first. */
const order = ['problem', 'warning', 'unknown', 'ok'] as const

const lastCheck = ['last check']
type LastCheck = DoctorResponse & { at: string }

/** Long because the box and its findings share the last check. */
function Doctor() {
  const { doctor: words } = texts
  const client = useQueryClient()
  // As long as the dashboard is open, also after a visit of other pages.
  const { data: last } = useQuery<LastCheck | null>({
    queryKey: lastCheck,
    queryFn: () => null,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  })
  const examine = useMutation({
    mutationFn: () => post<DoctorResponse>('/dashboard/api/doctor'),
    onSuccess: ({ findings }) => client.setQueryData<LastCheck>(lastCheck, { findings, at: new Date().toISOString() }),
  })
  const findings = last?.findings ?? []
  return (
    <Section title={words.title}>
      <Rows>
        <SettingRow
          title={words.check}
          control={
            <Button disabled={examine.isPending} onClick={() => examine.mutate()}>
              {examine.isPending ? words.running : words.run}
            </Button>
          }
        >
          <Coded>{words.about}</Coded>
          <Problem error={examine.error} />
          <div aria-live="polite">
            {last && (
              <p className="mt-1 text-ink">
                {order
                  .map((status) => `${findings.filter((one) => one.status === status).length} ${words.status[status].toLowerCase()}`)
                  .join(', ')}
                <span className="text-soft">
                  {' · '}
                  {words.last} <Time at={last.at} />
                </span>
              </p>
            )}
          </div>
        </SettingRow>
      </Rows>
      {findings.length > 0 && (
        <ul aria-label={words.title} className="mt-3 divide-y divide-line rounded-lg border border-line">
          {order
            .flatMap((status) => findings.filter((one) => one.status === status))
            .map(({ check, status, detail, remedy: todo }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: findings may share a name, and never move
              <li key={index} className="flex flex-col gap-1 p-3 text-sm [overflow-wrap:anywhere]">
                <p className="flex flex-wrap items-center gap-2">
                  <Badge tone={tones[status]}>{words.status[status]}</Badge>
                  <span className="font-medium">{check}</span>
                </p>
                <p>{detail}</p>
                {todo !== null && <p className="text-soft">{todo}</p>}
              </li>
            ))}
        </ul>
      )}
    </Section>
  )
}

function Installation() {
  const { installation: words } = texts
  const { data, error } = useQuery({ queryKey: ['installation'], queryFn: () => get<InstallationResponse>('/dashboard/api/installation') })
  return (
    <Section title={words.title} about={words.about}>
      {!data && <Waiting error={error} />}
      {data && (
        <>
          <Settings of={data.settings.filter(({ value }) => value !== null)} version={data.version} />
          <details className="group mt-3 overflow-hidden rounded-lg border border-line">
            <summary className="flex items-center gap-2 px-4 py-2.5 text-sm font-medium">
              <DownIcon size={14} className="shrink-0 -rotate-90 text-soft group-open:rotate-0" />
              {words.defaults}
            </summary>
            <Settings isInside of={data.settings.filter(({ value }) => value === null)} />
          </details>
        </>
      )}
    </Section>
  )
}

const row = 'grid gap-x-6 gap-y-1 px-4 py-2 [overflow-wrap:anywhere] md:grid-cols-[18rem_1fr]'

/** The first letter of a description is a capital, which its source leaves to where it stands. */
const asSentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

type SettingsProps = { of: InstallationResponse['settings']; version?: string; isInside?: boolean }

const Settings = ({ of, version, isInside = false }: SettingsProps) => (
  <dl className={`divide-y divide-line border-line text-sm ${isInside ? 'border-t' : 'rounded-lg border'}`}>
    {version !== undefined && (
      <div className={row}>
        <dt className="text-soft">{texts.installation.version}</dt>
        <dd className="font-mono text-xs leading-5">{version}</dd>
      </div>
    )}
    {of.map(({ name, value, default: usual, means }) => (
      <div key={name} className={row}>
        <dt className="font-mono text-xs text-soft md:pt-0.5">{name}</dt>
        <dd>
          <p className="font-mono text-xs leading-5">{value ?? <Coded>{usual}</Coded>}</p>
          <p className="text-soft">
            <Coded>{asSentence(means)}</Coded>
          </p>
        </dd>
      </div>
    ))}
  </dl>
)
