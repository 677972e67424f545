/** The permissions of a key as SendGrid's scopes. */
import type { Permission } from '#credentials'

const scopesOf: Readonly<Record<Permission, readonly string[]>> = {
  'emails:send': ['mail.send'],
  'emails:read': [],
  'domains:manage': [],
  'webhooks:manage': ['create', 'delete', 'read', 'update'].map((action) => `user.webhooks.event.settings.${action}`),
  'suppressions:manage': ['suppression.create', 'suppression.delete', 'suppression.read', 'suppression.update'].concat(
    ['create', 'delete', 'read', 'update'].map((action) => `asm.suppressions.global.${action}`),
  ),
}

/** `permissions` null: a key with full access. Only scopes of endpoints that are served are listed. */
export const sendgridScopes = (permissions: readonly Permission[] | null): string[] =>
  (permissions ?? (Object.keys(scopesOf) as Permission[])).flatMap((one) => scopesOf[one])
