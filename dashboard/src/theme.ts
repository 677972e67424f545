/** The theme: light, dark or the system's; stored in this browser. */
export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

export const readTheme = (): Theme => themes.find((one) => one === localStorage.getItem('theme')) ?? 'system'

export function showTheme(theme: Theme): void {
  localStorage.setItem('theme', theme)
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

showTheme(readTheme())
