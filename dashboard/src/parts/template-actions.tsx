/** Actions on one template, in the list and on its page: a copy under another name, and its deletion. */
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, remove } from '../api-client.ts'
import type { TemplatesCreateData, TemplatesListItem } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Confirm, FormDialog } from './action-dialogs.tsx'
import { Field } from './form-controls.tsx'
import type { MenuAction } from './menu.tsx'

const words = texts.templates
const maxNameLength = 64

export type TemplateAction = 'copy' | 'remove'

export const templateActions = (onChoose: (action: TemplateAction) => void): MenuAction[] => [
  { label: words.copy, onChoose: () => onChoose('copy') },
  { label: texts.actions.remove, isDanger: true, onChoose: () => onChoose('remove') },
]

interface Props {
  of: Pick<TemplatesListItem, 'id' | 'name'>
  action: TemplateAction
  onRemoved: () => unknown
  onClose: () => void
}

export function TemplateDialog({ of: template, action, onRemoved, onClose }: Props) {
  const { scoped } = useHere()
  const path = scoped(`/v1/templates/${encodeURIComponent(template.id)}`)
  if (action === 'copy') return <CopyTemplate path={path} name={template.name} onClose={onClose} />
  return (
    <Confirm
      title={words.removeTitle(template.name)}
      text={words.removeText}
      action={texts.actions.remove}
      run={() => remove(path)}
      onDone={onRemoved}
      onClose={onClose}
    />
  )
}

/** Of the draft. */
function CopyTemplate({ path, name: original, onClose }: { path: string; name: string; onClose: () => void }) {
  const { inBody } = useHere()
  const navigate = useNavigate()
  const [name, setName] = useState(`${original}-copy`.slice(0, maxNameLength))
  return (
    <FormDialog
      title={words.copyTitle(original)}
      action={words.copy}
      run={async () => {
        const { subject, html, text, variables } = await get<TemplatesCreateData>(path)
        return post<TemplatesCreateData>('/v1/templates', { name, subject, html, text, variables, ...inBody })
      }}
      onDone={async ({ id }) => {
        onClose()
        await navigate({ to: `/templates/${encodeURIComponent(id)}` as '/' })
      }}
      onClose={onClose}
    >
      <Field
        label={words.names.name}
        required
        pattern="[a-z][a-z0-9\-]{0,63}"
        help={words.nameHelp}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  )
}
