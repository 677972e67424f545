/** Postrider's names of fields in the text of a refusal, replaced by those of another vendor. */

/** Each of Postrider's names and the vendor's. Applied in order: a later name also matches the vendor's name that an earlier one gave. */
export type FieldNames = readonly (readonly [own: RegExp, vendors: string])[]

export const renameFields = (text: string, names: FieldNames): string =>
  names.reduce((renamed, [own, vendors]) => renamed.replace(own, vendors), text)
