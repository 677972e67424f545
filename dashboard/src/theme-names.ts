/** The names of the themes, apart from the browser, so that tests of texts need no document. */
export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]
