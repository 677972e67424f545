/** The dashboard's browser program: its pages and routes. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError, mayPass } from './api-client.ts'
import { Shell } from './layout.tsx'
import { NoSuchPage } from './pages/not-found.tsx'
import { SignInPage } from './pages/sign-in.tsx'
import './theme.ts'
import './style.css'

const root = createRootRoute({ notFoundComponent: NoSuchPage })
const signIn = createRoute({ getParentRoute: () => root, path: '/sign-in', component: () => <SignInPage /> })
const signInLink = createRoute({
  getParentRoute: () => root,
  path: '/sign-in/$token',
  component: () => <SignInPage token={signInLink.useParams().token} />,
})
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: () => <Shell /> })

const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : undefined)
/** Filters are part of the address, so that a list can be bookmarked and the back button returns to it. */
const search = (given: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(given).flatMap(([name, value]) => (text(value) === undefined ? [] : [[name, text(value)]]))) as Record<
    string,
    string
  >

const at = <Path extends string>(path: Path, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({
    getParentRoute: () => shell,
    path,
    validateSearch: search,
    // Another item of the same page begins without the state of the one before.
    remountDeps: ({ params }) => params,
    component: lazyRouteComponent(load as () => Promise<Record<string, () => React.ReactNode>>, name),
  })

const pages = [
  at('/', () => import('./pages/overview.tsx'), 'OverviewPage'),
  at('/queue', () => import('./pages/queue.tsx'), 'QueuePage'),
  at('/queue/waiting', () => import('./pages/queue-waiting.tsx'), 'QueueWaitingPage'),
  at('/transports', () => import('./pages/transports.tsx'), 'TransportsPage'),
  at('/tenants', () => import('./pages/tenants.tsx'), 'TenantsPage'),
  at('/emails', () => import('./pages/emails.tsx'), 'EmailsPage'),
  at('/emails/$emailId', () => import('./pages/email.tsx'), 'EmailPage'),
  at('/domains', () => import('./pages/domains.tsx'), 'DomainsPage'),
  at('/domains/$domainId', () => import('./pages/domains.tsx'), 'DomainPage'),
  at('/mail-in', () => import('./pages/mail-in.tsx'), 'MailInPage'),
  at('/mail-in/$receivedId', () => import('./pages/received-message.tsx'), 'ReceivedMessagePage'),
  at('/reputation', () => import('./pages/reputation.tsx'), 'ReputationPage'),
  at('/dmarc', () => import('./pages/dmarc.tsx'), 'DmarcPage'),
  at('/suppressions', () => import('./pages/suppressions.tsx'), 'SuppressionsPage'),
  at('/webhooks', () => import('./pages/webhooks.tsx'), 'WebhooksPage'),
  at('/webhooks/$webhookId', () => import('./pages/webhook.tsx'), 'WebhookPage'),
  at('/templates', () => import('./pages/templates.tsx'), 'TemplatesPage'),
  at('/templates/$templateId', () => import('./pages/template.tsx'), 'TemplatePage'),
  at('/keys', () => import('./pages/keys.tsx'), 'KeysPage'),
  at('/usage', () => import('./pages/usage.tsx'), 'UsagePage'),
  at('/logs', () => import('./pages/request-logs.tsx'), 'LogsPage'),
  at('/logs/$requestId', () => import('./pages/request-logs.tsx'), 'LogPage'),
  at('/inbox', () => import('./pages/test-inbox.tsx'), 'InboxPage'),
  at('/tracking', () => import('./pages/tracking.tsx'), 'TrackingPage'),
  at('/audit', () => import('./pages/audit-log.tsx'), 'AuditPage'),
  at('/settings', () => import('./pages/settings.tsx'), 'SettingsPage'),
  at('/members', () => import('./pages/members.tsx'), 'MembersPage'),
]

const router = createRouter({ routeTree: root.addChildren([signIn, signInLink, shell.addChildren(pages)]), defaultPreload: 'intent' })

const client = new QueryClient({
  defaultOptions: {
    queries: { retry: (count, error) => count < 2 && mayPass(error), staleTime: 1000 },
  },
})
client.getQueryCache().subscribe(({ type, query }) => {
  const { error } = query.state
  if (type === 'updated' && error instanceof ApiError && error.status === 401) void client.invalidateQueries({ queryKey: ['session'] })
})

const place = document.getElementById('root')
if (!place) throw new Error('the page has no root element')
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
