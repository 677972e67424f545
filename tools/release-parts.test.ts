import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  builders,
  checkedDate,
  checksums,
  chooseBuilders,
  imageVersion,
  isReleased,
  releasedChangelog,
  releaseProblems,
} from './release-parts.ts'
import { type Sbom, sbomProblems, shippedPart } from './sbom.ts'

const changelog = '# Changelog\n\n## Unreleased\n\n### Added\n\n- Costs $1 and $&.\n\n## 0.1.0 (2026-12-01)\n\nThe first release.\n'
const facts = { version: '0.2.0', otherVersions: { 'dashboard/package.json': '0.2.0' }, changelog, tags: ['v0.1.0'], changes: [] }

describe('before a release', () => {
  test('a clean tree with a new version and a changelog is accepted', () => {
    expect(releaseProblems(facts)).toEqual([])
    expect(releaseProblems({ ...facts, version: '1.0.0-rc.1', otherVersions: {} })).toEqual([])
  })

  test.each([
    ['a version that is not semantic', { version: '0.2', otherVersions: {} }, 'not semantic: 0.2'],
    ['another version elsewhere', { otherVersions: { 'package-lock.json': '0.1.9' } }, 'package-lock.json has version 0.1.9'],
    ['a missing version elsewhere', { otherVersions: { 'package-lock.json': undefined } }, 'package-lock.json has version (none)'],
    ['a tag of this version', { tags: ['v0.2.0'] }, 'the tag v0.2.0 exists'],
    ['changed files', { changes: ['src/main.ts'] }, 'has changes: src/main.ts'],
    ['no unreleased changes', { changelog: '# Changelog\n\n## Unreleased\n\n## 0.1.0\n\nText\n' }, 'has no text under'],
    ['no unreleased section', { changelog: '# Changelog\n\n## 0.1.0\n' }, 'is not "## Unreleased": ## 0.1.0'],
    ['a section of this version', { changelog: `${changelog}\n## 0.2.0 (2026-12-02)\n` }, 'has a section of 0.2.0 already'],
  ])('%s is a problem', (_, change, problem) => {
    expect(releaseProblems({ ...facts, ...change })).toEqual([expect.stringContaining(problem)])
  })

  test('the date is a day of the calendar', () => {
    expect(checkedDate('2028-02-29')).toBe('2028-02-29')
    for (const text of ['2027-02-29', '2027-1-1', 'today', undefined]) expect(() => checkedDate(text)).toThrow('--date')
  })
})

test("the unreleased changes become the version's, and nothing else changes", () => {
  const released = releasedChangelog(changelog, '0.2.0', '2027-01-31')
  expect(released).toBe(changelog.replace('## Unreleased\n', '## Unreleased\n\n## 0.2.0 (2027-01-31)\n'))
  expect(releaseProblems({ ...facts, changelog: released })).toEqual(['CHANGELOG.md has a section of 0.2.0 already'])
})

test('the images of a file of containers have one version, or the difference is named', () => {
  const images = (...versions: string[]) => versions.map((version) => `    image: postrider:${version}\n`).join('')
  const other = '    image: postgres:18\n'
  expect(imageVersion(images('0.2.0', '0.2.0') + other, 'postrider')).toBe('0.2.0')
  expect(imageVersion(images('0.2.0', '0.1.0'), 'postrider')).toBe('0.2.0, 0.1.0')
  expect(imageVersion(other, 'postrider')).toBeUndefined()
})

test.each([
  ['package:deb', 'tools/debian-package.ts'],
  ['package:image', 'tools/container-image.ts'],
])('%s needs the programs that it runs', (script, file) => {
  const run = [...readFileSync(file, 'utf8').matchAll(/(?:execFileSync|quiet)\('([\w-]+)'/g)].map(([, program]) => program)
  const needs = builders.find((one) => one.script === script)?.needs
  const everywhere = ['chown', 'cp', 'git', 'npm', 'tar']
  expect(needs).toEqual(expect.arrayContaining(run.filter((program) => !everywhere.includes(program as string))))
})

test('a builder without its script or its programs is left out with the reason', () => {
  const both = { 'package:deb': 'node a', 'package:image': 'node b' }
  expect(chooseBuilders(builders, both, () => true)).toEqual({ chosen: builders, leftOut: [] })
  expect(chooseBuilders(builders, { 'package:deb': 'node a' }, () => true)).toEqual({
    chosen: [builders[0]],
    leftOut: ['left out: image archives, because package.json has no script "package:image"'],
  })
  expect(chooseBuilders(builders, both, (name) => name !== 'buildah').leftOut).toEqual([
    expect.stringContaining('image archives, because this machine has no buildah'),
  ])
})

test("Debian's packages, which an image was made of, are not released", () => {
  const built = ['postrider_0.2.0_arm64.deb', 'postrider-0.2.0-amd64.oci.tar', 'bash_5.2.37-2+b10_amd64.deb', 'postrider-0.2.0-amd64.log']
  expect(built.filter((file) => isReleased(file, { name: 'postrider' }))).toEqual(built.slice(0, 2))
})

test('sha256sum accepts the checksums', () => {
  const folder = mkdtempSync(join(tmpdir(), 'checksums-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const files = ['b.tgz', 'a.deb'].map((name) => ({ name, octets: Buffer.from(`content of ${name}`) }))
  for (const { name, octets } of files) writeFileSync(join(folder, name), octets)
  writeFileSync(join(folder, 'SHA256SUMS'), checksums(files))
  expect(execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: folder, encoding: 'utf8' })).toBe('a.deb: OK\nb.tgz: OK\n')
})

describe('the bill of materials', () => {
  const component = (name: string) => ({ 'bom-ref': `${name}@1.0.0`, name, version: '1.0.0', licenses: [{}], hashes: [{}] })
  const all: Sbom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    metadata: { component: { 'bom-ref': 'folder@0.0.0', name: 'folder', version: '0.0.0' } },
    components: ['web', 'parser', 'react', 'reference', 'tester', 'only-of-tester'].map(component),
    dependencies: [
      { ref: 'web@1.0.0', dependsOn: ['parser@1.0.0'] },
      { ref: 'parser@1.0.0', dependsOn: ['web@1.0.0'] },
      { ref: 'tester@1.0.0', dependsOn: ['only-of-tester@1.0.0', 'parser@1.0.0'] },
      { ref: 'reference@1.0.0', dependsOn: ['tester@1.0.0'] },
    ],
  }
  const shipped = {
    name: 'postrider',
    version: '0.2.0',
    installed: { web: '1.0.0' },
    bundled: { react: '1.0.0' },
    copied: { reference: '1.0.0' },
  }

  test('has the dependencies with theirs, also those shared with development, and no others', () => {
    const bill = shippedPart(all, shipped)
    expect(bill.components.map(({ name }) => name)).toEqual(['web', 'parser', 'react', 'reference'])
    expect(bill.dependencies).toEqual([
      { ref: 'postrider@0.2.0', dependsOn: ['web@1.0.0', 'react@1.0.0', 'reference@1.0.0'] },
      { ref: 'web@1.0.0', dependsOn: ['parser@1.0.0'] },
      { ref: 'parser@1.0.0', dependsOn: ['web@1.0.0'] },
      { ref: 'react@1.0.0', dependsOn: [] },
      { ref: 'reference@1.0.0', dependsOn: [] },
    ])
    expect(bill.metadata.component).toMatchObject({ name: 'postrider', version: '0.2.0' })
    expect(sbomProblems(bill)).toEqual([])
  })

  test('is refused if the lock file lacks a dependency, or a component has no licence', () => {
    expect(() => shippedPart(all, { ...shipped, installed: { web: '1.0.1' } })).toThrow('lacks web@1.0.1')
    const bare = { ...all, components: all.components.map((one) => ({ ...one, licenses: [] })) }
    expect(sbomProblems(shippedPart(bare, shipped))).toEqual([expect.stringContaining('without a licence: web@1.0.0')])
  })
})
