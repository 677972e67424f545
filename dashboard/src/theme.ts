/** The theme: light, dark or the system's; stored in this browser. */
import { type Theme, themes } from './theme-names.ts'

export const readTheme = (): Theme => themes.find((one) => one === localStorage.getItem('theme')) ?? 'system'

export function showTheme(theme: Theme): void {
  localStorage.setItem('theme', theme)
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

showTheme(readTheme())
