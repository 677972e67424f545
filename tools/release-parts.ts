/** The parts of a release that touch no files: checks, the changelog's new section, checksums. Pure. */
import { hash } from 'node:crypto'

/** Semantic Versioning 2.0.0, without build metadata, which npm ignores. */
const versionForm = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/
const unreleased = '## Unreleased'

export interface ReleaseFacts {
  version: string
  /** Versions in the other manifests and in the lock file, by file. */
  otherVersions: Readonly<Record<string, string | undefined>>
  changelog: string
  /** Names of the existing tags. */
  tags: readonly string[]
  /** Changed files, as `git status --porcelain` lists them. */
  changes: readonly string[]
}

/** One sentence for each reason not to release. */
export function releaseProblems({ version, otherVersions, changelog, tags, changes }: ReleaseFacts): string[] {
  const different = Object.entries(otherVersions).filter(([, other]) => other !== version)
  return [
    ...(versionForm.test(version) ? [] : [`package.json has a version that is not semantic: ${version}`]),
    ...different.map(([file, other]) => `${file} has version ${other ?? '(none)'}; package.json has ${version}`),
    ...(tags.includes(`v${version}`)
      ? [`the tag v${version} exists. Increase the version: npm version --no-git-tag-version --workspaces --include-workspace-root`]
      : []),
    ...changelogProblems(changelog, version),
    ...(changes.length > 0 ? [`the working tree has changes: ${changes.join(', ')}. Commit or remove them`] : []),
  ]
}

const sectionsOf = (changelog: string) => changelog.split('\n').filter((line) => line.startsWith('## '))
const isSectionOf = (version: string) => (line: string) => line === `## ${version}` || line.startsWith(`## ${version} `)

function changelogProblems(changelog: string, version: string): string[] {
  const sections = sectionsOf(changelog)
  if (sections.some(isSectionOf(version))) return [`CHANGELOG.md has a section of ${version} already`]
  if (sections[0] !== unreleased) return [`the first section of CHANGELOG.md is not "${unreleased}": ${sections[0] ?? '(none)'}`]
  return unreleasedText(changelog) === '' ? [`CHANGELOG.md has no text under "${unreleased}"`] : []
}

function unreleasedText(changelog: string): string {
  const [, after = ''] = changelog.split(`${unreleased}\n`, 2)
  const end = after.search(/^## /m)
  return (end < 0 ? after : after.slice(0, end)).trim()
}

/** The changelog in which the text under "Unreleased" is that of the version; "Unreleased" is empty above it. */
export function releasedChangelog(changelog: string, version: string, date: string): string {
  return changelog.replace(`${unreleased}\n`, () => `${unreleased}\n\n## ${version} (${date})\n`)
}

/** Throws unless `text` is a day of the calendar: YYYY-MM-DD. */
export function checkedDate(text: string | undefined): string {
  const time = text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (text === undefined || Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text)
    throw new Error(`--date needs the day of the release as YYYY-MM-DD: ${text ?? '(none)'}`)
  return text
}

/** A builder of packages for one kind of installation; it has a script of its own. */
export interface Builder {
  script: string
  makes: string
  /** Programs that it runs. */
  needs: readonly string[]
}

/** `po2debconf` is run by debhelper. */
export const builders: readonly Builder[] = [
  { script: 'package:deb', makes: 'Debian packages', needs: ['dh', 'po2debconf', 'dpkg-architecture', 'dpkg-deb', 'readelf'] },
  { script: 'package:image', makes: 'image archives', needs: ['apt-get', 'buildah', 'dpkg-deb'] },
]

/** The version of the images that a file of containers names; several differing ones with commas. */
export function imageVersion(text: string, name: string): string | undefined {
  const images = [...text.matchAll(/^ *image: ([^:\s]+):(\S+)$/gm)]
  const versions = images.filter(([, image]) => image === name).map(([, , version]) => version)
  return versions.length === 0 ? undefined : [...new Set(versions)].join(', ')
}

/** Whether a file is an archive of this package. Others are Debian's packages, which the image was made of. */
export const isReleased = (file: string, { name }: { name: string }): boolean =>
  [`${name}-`, `${name}_`].some((beginning) => file.startsWith(beginning)) && /\.(deb|tar|tar\.[a-z]+|oci)$/.test(file)

/** The builders that can run, and a sentence for each that cannot. */
export function chooseBuilders(
  builders: readonly Builder[],
  scripts: Readonly<Record<string, string>>,
  hasProgram: (name: string) => boolean,
): { chosen: Builder[]; leftOut: string[] } {
  const reasons = builders.map((builder) => {
    const missing = builder.needs.filter((name) => !hasProgram(name))
    if (scripts[builder.script] === undefined) return `package.json has no script "${builder.script}"`
    return missing.length > 0 ? `this machine has no ${missing.join(' and no ')}. Install the Debian packages that contain them` : undefined
  })
  return {
    chosen: builders.filter((_, nth) => reasons[nth] === undefined),
    leftOut: builders.flatMap(({ makes }, nth) => (reasons[nth] === undefined ? [] : [`left out: ${makes}, because ${reasons[nth]}`])),
  }
}

/** The content of SHA256SUMS, for `sha256sum --check`; sorted by name. */
export function checksums(files: readonly { name: string; octets: Buffer }[]): string {
  return [...files]
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, octets }) => `${hash('sha256', octets)}  ${name}\n`)
    .join('')
}
