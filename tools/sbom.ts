/**
 * The software bill of materials of the published package (CycloneDX): every third-party package that is installed with it or is part of its
 * dashboard, with version, licence and hash.
 */
import { execFileSync } from 'node:child_process'

interface Component {
  'bom-ref': string
  name: string
  version: string
  licenses?: unknown[]
  hashes?: unknown[]
}

export interface Sbom {
  bomFormat: string
  specVersion: string
  metadata: { component: { 'bom-ref': string; name: string; version: string } }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

export interface Shipped {
  name: string
  version: string
  /** Installed with the package: names and exact versions of its dependencies, with all that they depend on. */
  installed: Record<string, string>
  /** Compiled into the dashboard: names and exact versions, with all that they depend on. */
  bundled: Record<string, string>
  /** Copied as one file: names and exact versions, without their dependencies. */
  copied: Record<string, string>
}

const refsOf = (versions: Record<string, string>) => Object.entries(versions).map(([name, version]) => `${name}@${version}`)

/**
 * Everything in the lock file, for all platforms, as npm describes it. Not `npm sbom --omit dev`: that leaves out each package that is also
 * a development dependency of any other (npm 11.19.1 omits 33 of 147, such as ipaddr.js).
 */
export function readLockedSbom(root: string): Sbom {
  const words = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
  const text = execFileSync('npm', words, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1_048_576 })
  return JSON.parse(text) as Sbom
}

/** The part of a bill that a package ships. Throws with the names that it lacks. */
export function shippedPart(all: Sbom, { name, version, installed, bundled, copied }: Shipped): Sbom {
  const dependsOn = new Map(all.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))
  const reached = new Set(refsOf(copied))
  const next = [...refsOf(installed), ...refsOf(bundled)]
  for (let ref = next.pop(); ref !== undefined; ref = next.pop()) {
    if (reached.has(ref)) continue
    reached.add(ref)
    next.push(...(dependsOn.get(ref) ?? []))
  }
  const components = all.components.filter((one) => reached.has(one['bom-ref']))
  const found = new Set(components.map((one) => one['bom-ref']))
  const missing = [...reached].filter((ref) => !found.has(ref))
  if (missing.length > 0) throw new Error(`the lock file lacks ${missing.join(', ')}. Run npm install, and commit package-lock.json`)
  const root = `${name}@${version}`
  const direct = [...refsOf(installed), ...refsOf(bundled), ...refsOf(copied)]
  return {
    ...all,
    metadata: { ...all.metadata, component: { ...all.metadata.component, 'bom-ref': root, name, version } },
    components,
    dependencies: [
      { ref: root, dependsOn: direct },
      ...components.map((one) => {
        const ref = one['bom-ref']
        return { ref, dependsOn: (dependsOn.get(ref) ?? []).filter((other) => found.has(other)) }
      }),
    ],
  }
}

/** One sentence for each fault of a bill: its form, and components without version, licence or hash. */
export function sbomProblems(bill: Sbom): string[] {
  const without = (what: string, isMissing: (one: Component) => boolean) => {
    const names = bill.components.filter(isMissing).map((one) => one['bom-ref'])
    return names.length === 0 ? [] : [`components without ${what}: ${names.join(', ')}`]
  }
  return [
    ...(bill.bomFormat === 'CycloneDX' ? [] : [`the format is not CycloneDX: ${bill.bomFormat}`]),
    ...(bill.components.length > 0 ? [] : ['there are no components']),
    ...without('a version', (one) => !one.version),
    ...without('a licence', (one) => !one.licenses?.length),
    ...without('a hash', (one) => !one.hashes?.length),
  ]
}
