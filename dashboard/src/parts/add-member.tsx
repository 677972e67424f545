/** The dialog that adds a member, and the choice of roles. */
import { useState } from 'react'
import { post } from '../api-client.ts'
import type { InvitationResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { FormDialog } from './action-dialogs.tsx'
import { Choices, Field, Select } from './form-controls.tsx'
import { OnlyNewestTenants } from './only-newest-tenants.tsx'

const { members: words } = texts

export const roleChoices = (['viewer', 'admin', 'owner'] as const).map((value) => ({
  value,
  label: words.roleNames[value],
  about: words.roles[value],
}))

interface AddMemberProps {
  /** Of members of the organisation. */
  passwordSignIn: boolean
  onClose: () => void
  onAdded: (made: InvitationResponse) => Promise<void>
}

export function AddMember({ passwordSignIn, onClose, onAdded }: AddMemberProps) {
  const { member: self, tenants } = useHere()
  const [address, setAddress] = useState('')
  const [role, setRole] = useState<string>('viewer')
  const [tenant, setTenant] = useState('')
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() =>
        post<InvitationResponse>('/dashboard/api/members', { address: address.trim(), role, ...(tenant ? { tenantId: tenant } : {}) })
      }
      onDone={onAdded}
      onClose={onClose}
    >
      <Field label={texts.signIn.address} type="email" required value={address} onChange={(event) => setAddress(event.target.value)} />
      <Choices legend={words.role} value={role} onChange={setRole} choices={roleChoices} />
      {self.tenantId === null && (
        <Select
          label={words.names.access}
          value={tenant}
          onChange={setTenant}
          choices={[
            { value: '', label: words.organisation },
            ...tenants.map(({ id, name }) => ({ value: id, label: words.onlyTenant(name) })),
          ]}
        />
      )}
      <OnlyNewestTenants />
      <p className="text-sm text-soft">{passwordSignIn || self.tenantId !== null || tenant !== '' ? words.addHelp : words.addByProvider}</p>
    </FormDialog>
  )
}
