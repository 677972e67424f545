/** Texts of the dashboard: members. */

import type { ShownMember } from '../api-types.ts'

export const membersTexts = {
  members: {
    about: 'Members sign in to the dashboard with a password of their own. A new member gets a link that works once.',
    alone: 'You are the only member',
    aloneHelp: 'Add a second owner, so that another person can help if you lose your password.',
    takeAway: 'Reset two-factor',
    add: 'Add member',
    addTitle: 'Add a member',
    addHelp: 'The next step shows the sign-in link. Postrider sends no email.',
    names: {
      address: 'Member',
      role: 'Role',
      status: 'Status',
      access: 'Access',
      secondFactor: 'Two-factor',
      lastSeen: 'Last active',
      added: 'Created',
    },
    you: 'You',
    isOn: 'On',
    isOff: 'Off',
    withoutFactor: 'Two-factor off',
    signedOut: 'Signed out',
    active: 'Active',
    invited: 'Invited',
    expired: 'Link expired',
    ends: 'link ends',
    activeShort: 'active',
    invitedMeans: 'The sign-in link is not used yet. It works for 24 hours; the menu makes a new one.',
    insecure: (count: number, all: number) =>
      all === 1 ? 'You sign in without a second factor.' : `${count} of ${all} members sign in without a second factor.`,
    toSettings: 'Turn on yours',
    actionsOf: (address: string) => `Actions for ${address}`,
    ownPassword: 'Change password',
    changeRole: 'Change role',
    roleTitle: (address: string) => `Role of ${address}`,
    newLink: 'Create new link',
    remove: 'Delete',
    linkOf: (address: string) => `Sign-in link for ${address}`,
    linkText: 'The link works once, within 24 hours, and is not shown again. Send it to the member over a channel you trust.',
    copyLink: 'Copy link',
    role: 'Role',
    roleNames: { viewer: 'Viewer', admin: 'Admin', owner: 'Owner' } satisfies Record<ShownMember['role'], string>,
    roles: {
      viewer: 'Reads everything except secrets, and changes nothing.',
      admin: 'Sends, and manages domains, keys, webhooks, suppressions and tenants.',
      owner: 'Does everything, and manages members.',
    } satisfies Record<ShownMember['role'], string>,
    organisation: 'Whole organisation',
    onlyTenant: (name: string) => `Only ${name}`,
    asks: {
      reset: {
        title: (address: string) => `New sign-in link for ${address}?`,
        text: 'Their password stops working and all their sessions end. Two-factor authentication stays on.',
        action: 'Create link',
      },
      'reset-second-factor': {
        title: (address: string) => `Reset two-factor authentication of ${address}?`,
        text: 'All their sessions end, and the password alone signs them in. Use this when the authenticator and the recovery codes are lost.',
        action: 'Reset',
      },
      remove: { title: (address: string) => `Delete ${address}?`, text: 'All their sessions end.', action: 'Delete' },
    },
  },
} as const
