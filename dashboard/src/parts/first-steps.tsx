/** The first steps of an installation without live mail, each with its state, for members who can take them. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { get, getPage } from '../api-client.ts'
import type { Credential, DomainsListData, ListedEmail } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge, Coded, Problem, Section } from './basic-components.tsx'
import { Code, Copy } from './time-and-copy.tsx'

const words = texts.firstSteps
const everyMs = 5000
const simulator = 'simulator.test'
/** Of the first start; the operator has seen it, so it counts once it was used. */
const printedKey = 'first-live-key'

type State = keyof typeof words.states

const tones = { done: 'good', waits: 'wait', open: 'none' } as const

/** The placeholder is quoted for a shell, which fills in the key. */
const curl = `curl -s ${location.origin}/v1/emails -H "Authorization: Bearer $POSTRIDER_KEY" -H 'Content-Type: application/json' -d '{"from":"hello@${simulator}","to":["delivered@${simulator}"],"subject":"Hello","text":"It works."}'`

const hasMail = (test: boolean) => getPage<ListedEmail>(`/v1/emails?perPage=1&test=${test}`).then(({ items }) => items.length > 0)

async function readSteps(): Promise<{ isLive: boolean; test: State; domain: State; key: State }> {
  const [isLive, isTested, { domains }, { items: keys }] = await Promise.all([
    hasMail(false),
    hasMail(true),
    get<DomainsListData>('/v1/domains'),
    getPage<Credential>('/v1/credentials?perPage=100&all=true'),
  ])
  const own = domains.filter(({ name }) => name !== simulator)
  const isMade = keys.some((one) => one.type === 'api' && one.mode === 'live' && (one.name !== printedKey || one.lastUsedAt !== null))
  return {
    isLive,
    test: isTested ? 'done' : 'open',
    domain: own.some(({ verified }) => verified) ? 'done' : own.length > 0 ? 'waits' : 'open',
    key: isMade ? 'done' : 'open',
  }
}

export function FirstSteps() {
  const { data, error } = useQuery({ queryKey: ['first-steps'], queryFn: readSteps, refetchInterval: everyMs })
  if (!data) return <Problem error={error} />
  if (data.isLive) return null
  return (
    <Section title={words.title}>
      <ol className="divide-y divide-line rounded-lg border border-line">
        <Step name={words.test} state={data.test} help={words.testHelp} to={<Link to="/inbox">{texts.pages.inbox}</Link>}>
          {data.test === 'open' && (
            <div className="mt-2 flex flex-col items-start gap-2">
              <Code>{curl}</Code>
              <Copy label={words.copy} text={curl} />
            </div>
          )}
        </Step>
        <Step name={words.domain} state={data.domain} help={words.domainHelp} to={<Link to="/domains">{texts.pages.domains}</Link>} />
        <Step name={words.key} state={data.key} help={words.keyHelp} to={<Link to="/keys">{texts.pages.keys}</Link>} />
      </ol>
      <p className="mt-2 mb-6 text-sm text-soft">{words.ends}</p>
    </Section>
  )
}

const Step = (props: { name: string; state: State; help: string; to: ReactNode; children?: ReactNode }) => (
  <li className="px-4 py-3">
    <div className="flex flex-wrap items-center gap-2">
      <h3 className="text-sm font-semibold">{props.name}</h3>
      <Badge tone={tones[props.state]}>{words.states[props.state]}</Badge>
      <span className="link ml-auto text-sm">{props.to}</span>
    </div>
    <p className="mt-1 text-sm text-soft">
      <Coded>{props.help}</Coded>
    </p>
    {props.children}
  </li>
)
