/** Dark or light, as the system has it unless a person chose. */

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'millrace-theme'

/** A page behind a strict browser setting has no storage. */
export function chosenTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY)
    return stored === 'light' || stored === 'dark' ? stored : 'system'
  } catch {
    return 'system'
  }
}

export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}

export function chooseTheme(theme: Theme): void {
  try {
    if (theme === 'system') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, theme)
  } catch {
    // Then it lasts as long as the page.
  }
  applyTheme(theme)
}

/** A colour of the style sheet, for the canvas. */
export const cssColour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim()
