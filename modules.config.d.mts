export const modules: readonly string[]
export const libraries: readonly string[]
export const entryPoints: readonly string[]
export const commonCommits: readonly string[]
