/** Parameters of the actions of version 1, except those that send. */
import { JsonFields } from '#vendors'
import { refuseSesField, SesRefusal } from './errors.ts'
import { readSesToken, type SesPage } from './suppression-objects.ts'

const version = '2010-12-01'
const maxNameLength = 320
const maxIdentities = 100
const maxTokenLength = 1000

/** The action of a request, of SES's only version. Throws a `SesRefusal`. */
export function readQueryAction(parameters: unknown): string {
  const fields = new JsonFields(parameters, '', refuseSesField)
  const action = fields.text('Action', maxNameLength)
  if (!action) throw new SesRefusal('unknownAction', 'the parameter Action is missing')
  const given = fields.text('Version', maxNameLength) ?? version
  if (given !== version)
    throw new SesRefusal('unknownAction', `Could not find operation ${action.slice(0, 60)} for version ${given.slice(0, 60)}`)
  return action
}

/** The identities that the request names. */
export function readIdentityNames(parameters: unknown): string[] {
  const fields = new JsonFields(parameters, '', refuseSesField)
  for (const name of ['Action', 'Version']) fields.value(name)
  const names = fields.texts('Identities', maxIdentities, maxNameLength)
  fields.refuseOthers()
  return names
}

/** Parameters of ListIdentities: whether domains are asked for, and the page. */
export function readIdentityPage(parameters: unknown): SesPage & { domains: boolean } {
  const fields = new JsonFields(parameters, '', refuseSesField)
  for (const name of ['Action', 'Version']) fields.value(name)
  const type = fields.text('IdentityType', maxNameLength)
  if (type !== undefined && type !== 'Domain' && type !== 'EmailAddress')
    throw fields.wrong('IdentityType', 'must be Domain or EmailAddress')
  const size = fields.text('MaxItems', maxNameLength)
  if (size !== undefined && !/^\d{1,4}$/.test(size)) throw fields.wrong('MaxItems', 'must be a number')
  const beyond = readSesToken(fields.text('NextToken', maxTokenLength))
  fields.refuseOthers()
  return { domains: type !== 'EmailAddress', size: Number(size ?? 0) || maxIdentities, beyond }
}

/** Refuses every parameter of an action without parameters. */
export function refuseParameters(parameters: unknown): void {
  const fields = new JsonFields(parameters, '', refuseSesField)
  for (const name of ['Action', 'Version']) fields.value(name)
  fields.refuseOthers()
}
