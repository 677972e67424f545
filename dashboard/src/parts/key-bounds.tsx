/** The bounds of a narrow key: the fields of forms, their text in lists, and the dialog that changes them. */
import { type ReactNode, useState } from 'react'
import { patch } from '../api-client.ts'
import type { Credential } from '../api-types.ts'
import { texts } from '../texts.ts'
import { zoneNow } from '../time-zone.ts'
import { FormDialog } from './action-dialogs.tsx'
import { Field } from './form-controls.tsx'
import { Time } from './time-and-copy.tsx'
import { fieldOf, instantOf } from './zoned-times.ts'

const words = texts.keys.bounds

/** As in the fields: lists with commas, a time of the shown zone, a number. */
export interface BoundsDraft {
  from: string
  networks: string
  expires: string
  sendLimit: string
}

export const noBounds: BoundsDraft = { from: '', networks: '', expires: '', sendLimit: '' }

const draftOf = ({ allowedFrom, allowedNetworks, expiresAt, sendLimit }: Credential): BoundsDraft => ({
  from: allowedFrom?.join(', ') ?? '',
  networks: allowedNetworks?.join(', ') ?? '',
  expires: expiresAt === undefined ? '' : fieldOf(zoneNow(), Date.parse(expiresAt)),
  sendLimit: sendLimit === undefined ? '' : String(sendLimit),
})

const listIn = (text: string) => {
  const list = text.split(/[\s,]+/).filter((one) => one !== '')
  return list.length === 0 ? null : list
}

/** For the body of a request; an empty field is null, which means no bound. */
export const boundsOf = ({ from, networks, expires, sendLimit }: BoundsDraft) => ({
  allowedFrom: listIn(from),
  allowedNetworks: listIn(networks),
  expiresAt: expires === '' ? null : (instantOf(zoneNow(), expires)?.toISOString() ?? expires),
  sendLimit: sendLimit === '' ? null : Number(sendLimit),
})

export function BoundsFields({ draft, onChange }: { draft: BoundsDraft; onChange: (draft: BoundsDraft) => void }) {
  const field = (name: keyof BoundsDraft) => ({
    value: draft[name],
    onChange: ({ target }: { target: { value: string } }) => onChange({ ...draft, [name]: target.value }),
  })
  return (
    <>
      <Field label={words.from} help={words.fromHelp} {...field('from')} />
      <Field label={words.networks} help={words.networksHelp} {...field('networks')} />
      <Field label={words.expires} type="datetime-local" {...field('expires')} />
      <Field label={words.sendLimit} type="number" min={1} max={1_000_000_000} step={1} {...field('sendLimit')} />
    </>
  )
}

export const isBound = ({ allowedFrom, allowedNetworks, expiresAt, sendLimit }: Credential) =>
  [allowedFrom, allowedNetworks, expiresAt, sendLimit].some((one) => one !== undefined)

/** Renders no element for a key without bounds. */
export function Bounds({ allowedFrom, allowedNetworks, expiresAt, sendLimit }: Credential) {
  const lines: [string, ReactNode][] = [
    ...(allowedFrom ? [['from', words.sendsFrom(allowedFrom.join(', '))] as [string, ReactNode]] : []),
    ...(allowedNetworks ? [['networks', words.usedFrom(allowedNetworks.join(', '))] as [string, ReactNode]] : []),
    ...(expiresAt
      ? [
          [
            'expires',
            <>
              {Date.parse(expiresAt) <= Date.now() ? words.expired : words.until} <Time at={expiresAt} />
            </>,
          ] as [string, ReactNode],
        ]
      : []),
    ...(sendLimit ? [['limit', words.perHour(sendLimit)] as [string, ReactNode]] : []),
  ]
  if (lines.length === 0) return null
  return (
    <ul className="break-words">
      {lines.map(([name, line]) => (
        <li key={name}>{line}</li>
      ))}
    </ul>
  )
}

interface ChangeBoundsProps {
  of: Credential
  path: string
  onDone: () => unknown
  onClose: () => void
}

export function ChangeBounds({ of, path, onDone, onClose }: ChangeBoundsProps) {
  const [before] = useState(() => draftOf(of))
  const [draft, setDraft] = useState(before)
  /** Only changed bounds: the others may have been changed elsewhere since. */
  const save = async () => {
    const [given, known] = [boundsOf(draft), boundsOf(before)]
    const names = (Object.keys(given) as (keyof typeof given)[]).filter((name) => String(given[name]) !== String(known[name]))
    if (names.length > 0) await patch(path, Object.fromEntries(names.map((name) => [name, given[name]])))
  }
  return (
    <FormDialog title={words.title(of.name)} action={words.save} run={save} onDone={onDone} onClose={onClose}>
      <BoundsFields draft={draft} onChange={setDraft} />
    </FormDialog>
  )
}
