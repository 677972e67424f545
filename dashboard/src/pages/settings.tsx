/** The person's account and two-factor authentication; for owners of the organisation also the doctor's check results and the settings in force. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { get, post } from '../api-client.ts'
import type { DoctorResponse, InstallationResponse } from '../api-types.ts'
import { Badge, Button, Coded, Heading, Problem, Section } from '../parts/basic-components.tsx'
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

function Doctor() {
  const { doctor: words } = texts
  const examine = useMutation({ mutationFn: () => post<DoctorResponse>('/dashboard/api/doctor') })
  const findings = examine.data?.findings ?? []
  return (
    <Section
      title={words.title}
      about={<Coded>{words.about}</Coded>}
      aside={
        <Button disabled={examine.isPending} onClick={() => examine.mutate()}>
          {examine.isPending ? words.running : words.run}
        </Button>
      }
    >
      <Problem error={examine.error} />
      <div aria-live="polite">
        {examine.data && (
          <p className="mb-2 text-sm">
            {order
              .map((status) => `${findings.filter((one) => one.status === status).length} ${words.status[status].toLowerCase()}`)
              .join(', ')}
            <span className="text-soft">
              {' · '}
              {words.last} <Time at={new Date(examine.submittedAt).toISOString()} />
            </span>
          </p>
        )}
      </div>
      {findings.length > 0 && (
        <ul aria-label={words.title} className="divide-y divide-line rounded-md border border-line">
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
          <details className="mt-3">
            <summary className="min-h-9 py-2 text-sm font-medium">{words.defaults}</summary>
            <Settings of={data.settings.filter(({ value }) => value === null)} />
          </details>
        </>
      )}
    </Section>
  )
}

const row = 'grid gap-x-6 gap-y-1 py-2 [overflow-wrap:anywhere] md:grid-cols-[18rem_1fr]'

/** The first letter of a description is a capital, which its source leaves to where it stands. */
const asSentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

const Settings = ({ of, version }: { of: InstallationResponse['settings']; version?: string }) => (
  <dl className="divide-y divide-line rounded-lg border border-line px-4 text-sm">
    {version !== undefined && (
      <div className={row}>
        <dt>{texts.installation.version}</dt>
        <dd className="font-medium">{version}</dd>
      </div>
    )}
    {of.map(({ name, value, default: usual, means }) => (
      <div key={name} className={row}>
        <dt className="font-mono text-xs md:pt-0.5">{name}</dt>
        <dd>
          <p className="font-medium">{value ?? <Coded>{usual}</Coded>}</p>
          <p className="text-soft">
            <Coded>{asSentence(means)}</Coded>
          </p>
        </dd>
      </div>
    ))}
  </dl>
)
