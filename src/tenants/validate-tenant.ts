/** Validates a tenant's name and metadata. Each refusal names the field. */
import { rejectUnstorableText, wrongField } from '#base'

export type TenantMetadata = Record<string, string | number | boolean | null>

const maxNameLength = 100
const metadataBounds = { keys: 50, key: 40, text: 500, octets: 8192 }

export function checkTenant({ name, metadata }: { name?: string | undefined; metadata?: TenantMetadata | null | undefined }): void {
  if (name !== undefined) {
    if (name === '' || [...name].length > maxNameLength) throw wrongField('name', `must have 1 to ${maxNameLength} characters`)
    rejectUnstorableText('name', name)
  }
  if (!metadata) return
  const entries = Object.entries(metadata)
  if (entries.length > metadataBounds.keys) throw wrongField('metadata', `has more than ${metadataBounds.keys} keys`)
  for (const [key, value] of entries) {
    const field = `metadata.${key.slice(0, metadataBounds.key)}`
    if (key === '' || [...key].length > metadataBounds.key)
      throw wrongField(field, `is not a valid key: use 1 to ${metadataBounds.key} characters`)
    rejectUnstorableText(field, key)
    if (typeof value !== 'string') continue
    if ([...value].length > metadataBounds.text) throw wrongField(field, `is longer than ${metadataBounds.text} characters`)
    rejectUnstorableText(field, value)
  }
  if (Buffer.byteLength(JSON.stringify(metadata)) > metadataBounds.octets)
    throw wrongField('metadata', `is larger than ${metadataBounds.octets} bytes as JSON`)
}
