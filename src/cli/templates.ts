/** Commands for templates: list, push, publish, preview, delete. */
import { ApiError } from '#client'
import { apiHelp, apiUsage, maxListed, perRequest, plain, plainLines, scopeOf, tenantApiOptions, withApi } from './api.ts'
import { type Command, printed, text, UsageError } from './command-definition.ts'
import { fileOf, objectOf } from './json-option.ts'

export const templateList: Command = {
  name: 'template list',
  summary: 'list templates with their published versions',
  help: `postrider template list [--tenant ID] ${apiUsage}

Lists the templates of a tenant (default: the default tenant) by name.
${apiHelp}

Example: postrider template list`,
  options: tenantApiOptions,
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const templates = await scopeOf(service, given).templates.list({ perPage: perRequest }).take(maxListed)
      const lines = templates.map(
        ({ name, subject, publishedVersion }) =>
          `${name.padEnd(24)}${publishedVersion === null ? 'draft' : `version ${publishedVersion}`}  ${plain(subject).slice(0, 80)}`,
      )
      printed(
        given,
        deps,
        { templates },
        lines.join('\n') || 'no templates. To create one: postrider template push NAME --subject S --html FILE',
      )
    }),
}

export const templatePush: Command = {
  name: 'template push',
  audited: true,
  summary: 'create a template, or change its draft, from files',
  help: `postrider template push NAME [--subject S] [--html FILE] [--text FILE] [--variables JSON|@FILE] [--publish] [--tenant ID]
                        ${apiUsage}

Creates the template of this name, or changes the given parts of its draft. Sends use the draft once it is published.
--subject      subject, in Liquid
--html, --text  files with the texts, in Liquid: the output of MJML, React Email or another program, or your own
--variables    types and defaults, such as {"name":{"type":"string","default":"friend"}}; types: string, number, boolean, array, object
--publish      also publishes the draft
${apiHelp}

Example: postrider template push receipt --subject 'Your order {{ number }}' --html receipt.html --publish`,
  options: {
    subject: { type: 'string' },
    html: { type: 'string' },
    text: { type: 'string' },
    variables: { type: 'string' },
    publish: { type: 'boolean' },
    ...tenantApiOptions,
  },
  positionals: ['NAME'],
  run(given, deps) {
    const [name = ''] = given.positionals
    const subject = text(given, 'subject')
    const [html, plainText] = [fileOf(given, 'html'), fileOf(given, 'text')]
    const variables = objectOf(given, 'variables') as Record<string, { type: 'string'; default?: unknown }> | undefined
    const draft = {
      ...(subject === undefined ? {} : { subject }),
      ...(html === undefined ? {} : { html }),
      ...(plainText === undefined ? {} : { text: plainText }),
      ...(variables === undefined ? {} : { variables }),
    }
    return withApi(given, deps, async (service) => {
      const { templates } = scopeOf(service, given)
      const known = await templates.retrieve(name).catch((error: unknown) => {
        if (error instanceof ApiError && error.code === 'not_found') return undefined
        throw error
      })
      if (!known && subject === undefined) throw new UsageError('--subject is required for a new template')
      const pushed = known ? await templates.update(name, draft) : await templates.create({ name, subject: subject ?? '', ...draft })
      const shown = given.options.publish === true ? await templates.publish(name) : pushed
      const state = given.options.publish === true ? `version ${shown.publishedVersion} is published` : 'the draft is saved'
      printed(given, deps, { ...shown }, `template ${name} (${shown.id}): ${state}`)
    })
  },
}

const oneTemplate = { options: tenantApiOptions, positionals: ['NAME'] } as const

export const templatePublish: Command = {
  name: 'template publish',
  audited: true,
  summary: 'publish the draft of a template',
  help: `postrider template publish NAME [--tenant ID] ${apiUsage}

Publishes the draft as the next version, which sends use from then on. Earlier versions stay and can be sent by their numbers.
${apiHelp}

Example: postrider template publish receipt`,
  ...oneTemplate,
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [name = ''] = given.positionals
      const published = await scopeOf(service, given).templates.publish(name)
      printed(given, deps, { ...published }, `template ${published.name}: version ${published.publishedVersion} is published`)
    }),
}

export const templatePreview: Command = {
  name: 'template preview',
  summary: 'print a template with values, without sending it',
  help: `postrider template preview NAME [--variables JSON|@FILE] [--version N] [--tenant ID] ${apiUsage}

Renders the draft of a template, or with --version a published version, and prints subject, text and HTML.
${apiHelp}

Example: postrider template preview receipt --variables '{"number":7}'`,
  options: { variables: { type: 'string' }, version: { type: 'string' }, ...tenantApiOptions },
  positionals: ['NAME'],
  run(given, deps) {
    const [name = ''] = given.positionals
    const version = text(given, 'version')
    if (version !== undefined && !/^[1-9]\d{0,8}$/.test(version)) throw new UsageError('--version must be a whole number of at least 1')
    const variables = objectOf(given, 'variables') ?? {}
    return withApi(given, deps, async (service) => {
      const parameters = { variables, ...(version === undefined ? {} : { templateVersion: Number(version) }) }
      const { subject, html, text: plainText } = await scopeOf(service, given).templates.preview(name, parameters)
      const shown = [`Subject: ${subject}`, ...[plainText, html].filter((part) => part !== null)].map(plainLines)
      printed(given, deps, { subject, html, text: plainText }, shown.join('\n\n'))
    })
  },
}

export const templateDelete: Command = {
  name: 'template delete',
  audited: true,
  summary: 'delete a template with its versions',
  help: `postrider template delete NAME [--tenant ID] ${apiUsage}

Deletes a template. Sends that name it are refused from then on; emails that were accepted are not changed.
${apiHelp}

Example: postrider template delete receipt`,
  ...oneTemplate,
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [name = ''] = given.positionals
      await scopeOf(service, given).templates.delete(name)
      printed(given, deps, { name, deleted: true }, `template ${name} is deleted`)
    }),
}
