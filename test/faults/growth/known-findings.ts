/** What the search has found: mended, and tried first ever since. */
import { readFileSync } from 'node:fs'
import type { Recipe } from './input-recipe.ts'

export interface Kept {
  reader: string
  recipe: Recipe
  /** What it did before it was mended. */
  was: string
}

export const kept: readonly Kept[] = JSON.parse(readFileSync(new URL('./known-findings.json', import.meta.url), 'utf8'))
