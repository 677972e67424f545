/**
 * Public interfaces: reads the paragraph that opens each module (`Owns: … Uses: … Used by: …`), compares it with the real imports, and
 * collects all of them in docs/generated/house.md.
 */
import type { Direction } from './direction.ts'
import { type House, headOf, importsOf, type Problem, type SourceFile } from './source.ts'

export interface Face {
  room: string
  path: string
  /** The module's purpose, from its own paragraph. */
  purpose: string
  owns: string[]
  uses: string[]
  /** `every room` is kept unchanged. */
  usedBy: string[]
  promises: string
}

const form = /^(.*?) ?Owns: (.*?)\. Uses: (.*?)\. Used by: (.*?)\. Promises: (.*)$/

const names = (list: string) =>
  list
    .replace(/\([^)]*\)/g, '')
    .split(/,| and /)
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'nothing')

export function readFaces(house: House, files: SourceFile[]): { faces: Face[]; problems: Problem[] } {
  const problems: Problem[] = []
  const faces: Face[] = []
  for (const room of house.rooms) {
    if (!files.some((file) => file.room === room && !file.isTest)) continue
    const path = `src/${room}/${room}.ts`
    const file = files.find((candidate) => candidate.path === path)
    if (!file) {
      problems.push({ rule: 'face', at: `src/${room}/`, says: `has no face ${path}` })
      continue
    }
    const [, purpose, owns, uses, usedBy, promises] = form.exec(headOf(file.text) ?? '') ?? []
    if (purpose === undefined || owns === undefined || uses === undefined || usedBy === undefined || promises === undefined) {
      problems.push({
        rule: 'face',
        at: path,
        says: 'does not open with a paragraph "what it is. Owns: … . Uses: … . Used by: … . Promises: …"',
      })
      continue
    }
    faces.push({ room, path, purpose, owns: names(owns), uses: names(uses), usedBy: names(usedBy), promises })
  }
  return { faces, problems }
}

export function checkFaces(house: House, files: SourceFile[], direction: Pick<Direction, 'uses' | 'usedByMain'>): Problem[] {
  const { faces, problems } = readFaces(house, files)
  const exists = (room: string) => files.some((file) => file.room === room)
  for (const face of faces) {
    const says = (text: string) => problems.push({ rule: 'face', at: face.path, says: text })
    const used = direction.uses.get(face.room) ?? new Set<string>()
    for (const room of used) if (!face.uses.includes(room)) says(`uses ${room}, but does not say so in "Uses:"`)
    for (const room of face.uses) if (!used.has(room)) says(`says "Uses: ${room}", but imports nothing from it`)

    if (face.usedBy.includes('every room')) continue
    for (const [user, rooms] of direction.uses) {
      if (rooms.has(face.room) && !face.usedBy.includes(user)) says(`is used by ${user}, but does not say so in "Used by:"`)
    }
    for (const user of face.usedBy) {
      if (user === 'main') {
        if (files.some((file) => file.path === 'src/main.ts') && !direction.usedByMain.has(face.room))
          says('says "Used by: main", but src/main.ts imports nothing from it')
      } else if (!house.rooms.includes(user)) says(`says "Used by: ${user}", which is no room`)
      else if (exists(user) && !direction.uses.get(user)?.has(face.room)) says(`says "Used by: ${user}", which imports nothing from it`)
    }
  }
  for (const file of files) {
    if (file.room !== undefined && !house.rooms.includes(file.room)) {
      problems.push({ rule: 'room-not-in-list', at: file.path, says: `${file.room} is not in the list of house.config.mjs` })
    } else if (file.room === undefined && !/^src\/main(\.test)?\.ts$/.test(file.path)) {
      problems.push({ rule: 'room-not-in-list', at: file.path, says: 'lies in no room; the only bare file of src/ is main.ts' })
    }
    if (!file.isTest && headOf(file.text) === undefined)
      problems.push({ rule: 'head', at: file.path, says: 'has no head comment saying what it is for' })
    for (const { specifier } of importsOf(file)) {
      if (specifier === `#${file.room}`)
        problems.push({ rule: 'own-face', at: file.path, says: `imports its own room by ${specifier}; inside a room import './file.ts'` })
    }
  }
  return problems
}

/** docs/generated/house.md. */
export function houseDocument(house: House, faces: Face[]): string {
  const list = (items: string[]) => (items.length === 0 ? 'nothing' : items.join(', '))
  const kind = (room: string) => (house.crafts.includes(room) ? ' (craft)' : house.doors.includes(room) ? ' (door)' : '')
  const rooms = faces.map((face) =>
    [
      `## ${face.room}${kind(face.room)}`,
      '',
      face.purpose,
      '',
      `- Owns: ${list(face.owns)}`,
      `- Uses: ${list(face.uses)}`,
      `- Used by: ${list(face.usedBy)}`,
      `- Promises: ${face.promises}`,
      '',
    ].join('\n'),
  )
  return [
    '# The house',
    '',
    'Generated from the faces of the rooms by `npm run golden`. Ground floor first: a room may use the rooms above it on this page,',
    'never those below. `npm run check` compares each paragraph with the real imports.',
    '',
    ...rooms,
  ].join('\n')
}
