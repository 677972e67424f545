export const rooms: readonly string[]
export const crafts: readonly string[]
export const doors: readonly string[]
export const commonCommits: readonly string[]
