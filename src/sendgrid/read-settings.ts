/** Reads `mail_settings` and `tracking_settings`: a setting that is not served may be absent or off. */
import type { TrackingWish } from '#accept'
import { JsonFields } from '#vendors'
import { refuseSendGridField } from './errors.ts'

const maxTextLength = 100_000

/** The settings of one kind by name, each with its reader; the caller asks for those that it serves. */
class Settings {
  readonly #fields: JsonFields
  readonly #path: string

  constructor(mail: JsonFields, path: string) {
    this.#fields = new JsonFields(mail.value(path) ?? {}, path, refuseSendGridField)
    this.#path = path
  }

  /** Whether the setting is on; undefined if it is absent. `read` reads its other members where it is on. */
  served(name: string, read: (setting: JsonFields) => void = () => undefined): boolean | undefined {
    const setting = this.#settingOf(name)
    const isOn = setting?.flag('enable')
    if (setting && isOn) {
      read(setting)
      setting.refuseOthers()
    }
    return setting && (isOn ?? false)
  }

  /** Refuses each of these that is on. */
  unserved(names: readonly string[]): void {
    for (const name of names) if (this.#settingOf(name)?.flag('enable')) throw this.#fields.wrong(name, 'is not served', 'not served')
    this.#fields.refuseOthers()
  }

  #settingOf(name: string): JsonFields | undefined {
    const value = this.#fields.value(name)
    return value === undefined ? undefined : new JsonFields(value, `${this.#path}.${name}`, refuseSendGridField)
  }
}

/** Whether `sandbox_mode` is on. */
export function readMailSettings(mail: JsonFields): boolean {
  const settings = new Settings(mail, 'mail_settings')
  const isSandbox = settings.served('sandbox_mode') ?? false
  settings.unserved([
    'bcc',
    'bypass_list_management',
    'bypass_spam_management',
    'bypass_bounce_management',
    'bypass_unsubscribe_management',
    'footer',
    'spam_check',
  ])
  return isSandbox
}

/** Absent settings: as the sender's track domain is set. Only links in HTML are tracked, so `enable_text` is refused. */
export function readTrackingSettings(mail: JsonFields): TrackingWish {
  const settings = new Settings(mail, 'tracking_settings')
  const clicks = settings.served('click_tracking', (setting) => {
    if (setting.flag('enable_text')) throw setting.wrong('enable_text', 'is served only as false: links in text are not tracked')
  })
  const opens = settings.served('open_tracking', (setting) => {
    if (setting.text('substitution_tag', maxTextLength)) throw setting.wrong('substitution_tag', 'is not served', 'not served')
  })
  settings.unserved(['subscription_tracking', 'ganalytics'])
  return { opens, clicks }
}
