/** The list of the other vendors' APIs, in the order in which they recognise requests at the root. */
import type { Config } from '#base'
import { postalApi } from './postal-endpoints.ts'
import { postmarkApi } from './postmark-endpoints.ts'
import { resendApi } from './resend-endpoints.ts'
import { sendgridApi } from './sendgrid-endpoints.ts'
import { sesApi } from './ses-endpoints.ts'
import type { VendorApi } from './vendor-api.ts'

export type VendorSettings = Pick<Config, 'postalApi' | 'resendApi' | 'sendgridApi' | 'postmarkApi' | 'sesApi'>

/** Those that the settings serve. */
export const vendorApis = (config: VendorSettings): VendorApi[] => [
  ...(config.postalApi ? [postalApi] : []),
  ...(config.postmarkApi ? [postmarkApi] : []),
  ...(config.sesApi ? [sesApi] : []),
  ...(config.sendgridApi ? [sendgridApi] : []),
  ...(config.resendApi ? [resendApi] : []),
]
