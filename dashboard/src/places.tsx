/** The pages of the navigation, in groups, with their icons and the members who may open them. */
import type { ReactNode } from 'react'
import type { ShownMember } from './api-types.ts'
import {
  AuditIcon,
  DmarcIcon,
  DomainsIcon,
  EmailsIcon,
  InboxIcon,
  KeysIcon,
  LogsIcon,
  MailInIcon,
  MembersIcon,
  OverviewIcon,
  QueueIcon,
  ReputationIcon,
  SettingsIcon,
  SuppressionsIcon,
  TemplatesIcon,
  TenantsIcon,
  TrackingIcon,
  TransportsIcon,
  UsageIcon,
  WebhooksIcon,
} from './parts/icons.tsx'
import { texts } from './texts.ts'

export interface Place {
  to: string
  name: string
  icon: ReactNode
  /** `owner`: owners; `operator`: owners of the organisation. */
  only?: 'owner' | 'operator'
}

const size = 16
const groups: readonly { name: string; places: readonly Place[] }[] = [
  {
    name: texts.shell.groups.send,
    places: [
      { to: '/', name: texts.pages.overview, icon: <OverviewIcon size={size} /> },
      { to: '/emails', name: texts.pages.emails, icon: <EmailsIcon size={size} /> },
      { to: '/inbox', name: texts.pages.inbox, icon: <InboxIcon size={size} /> },
      { to: '/usage', name: texts.pages.usage, icon: <UsageIcon size={size} /> },
    ],
  },
  {
    name: texts.shell.groups.setUp,
    places: [
      { to: '/domains', name: texts.pages.domains, icon: <DomainsIcon size={size} /> },
      { to: '/mail-in', name: texts.pages.mailIn, icon: <MailInIcon size={size} /> },
      { to: '/tracking', name: texts.pages.tracking, icon: <TrackingIcon size={size} /> },
      { to: '/webhooks', name: texts.pages.webhooks, icon: <WebhooksIcon size={size} /> },
      { to: '/templates', name: texts.pages.templates, icon: <TemplatesIcon size={size} /> },
      { to: '/keys', name: texts.pages.keys, icon: <KeysIcon size={size} /> },
    ],
  },
  {
    name: texts.shell.groups.reputation,
    places: [
      { to: '/reputation', name: texts.pages.reputation, icon: <ReputationIcon size={size} /> },
      { to: '/suppressions', name: texts.pages.suppressions, icon: <SuppressionsIcon size={size} /> },
      { to: '/dmarc', name: texts.pages.dmarc, icon: <DmarcIcon size={size} /> },
    ],
  },
  {
    name: texts.shell.groups.operate,
    places: [
      { to: '/queue', name: texts.pages.queue, icon: <QueueIcon size={size} />, only: 'operator' },
      { to: '/transports', name: texts.pages.transports, icon: <TransportsIcon size={size} />, only: 'operator' },
      { to: '/tenants', name: texts.pages.tenants, icon: <TenantsIcon size={size} />, only: 'operator' },
      { to: '/logs', name: texts.pages.logs, icon: <LogsIcon size={size} /> },
      { to: '/audit', name: texts.pages.audit, icon: <AuditIcon size={size} />, only: 'owner' },
    ],
  },
  {
    name: texts.shell.groups.account,
    places: [
      { to: '/members', name: texts.pages.members, icon: <MembersIcon size={size} />, only: 'owner' },
      { to: '/settings', name: texts.pages.settings, icon: <SettingsIcon size={size} /> },
    ],
  },
]

/** The groups without the pages that the member's role may not use. */
export const groupsFor = ({ role, tenantId }: ShownMember) =>
  groups
    .map(({ name, places }) => ({
      name,
      places: places.filter(({ only }) => only === undefined || (role === 'owner' && (only === 'owner' || tenantId === null))),
    }))
    .filter(({ places }) => places.length > 0)
