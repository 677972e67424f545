/** Earlier finds of the search, all fixed. Each search tries them first. */
import { readFileSync } from 'node:fs'
import type { Recipe } from './input-recipe.ts'

export interface Kept {
  reader: string
  recipe: Recipe
  /** The cost before the fix. */
  was: string
}

export const kept: readonly Kept[] = JSON.parse(readFileSync(new URL('./known-findings.json', import.meta.url), 'utf8'))
