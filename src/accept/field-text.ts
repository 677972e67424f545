/** Refuses text that a field of a submission cannot have. Each refusal names the field by its JSON path. */
import { type RefusalCode, rejectUnstorableText, wrongField } from '#base'

export const refuseField = (field: string, message: string, code: RefusalCode = 'validation_error', suggestion?: string): never => {
  throw wrongField(field, message, code, suggestion)
}

/** A tab is white space; the others change the displayed text, end the line, or are lost on the way. */
export const unfitForHeader = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/

export function checkLine(field: string, text: string): void {
  rejectUnstorableText(field, text)
  if (/[\r\n]/.test(text)) refuseField(field, 'must be one line, without CR or LF')
  if (unfitForHeader.test(text)) refuseField(field, 'contains a control character or a line separator')
}
