/** The dashboard's choice of light or dark, and copy buttons. The pages of the guide work without it. */
try {
  const theme = localStorage.getItem('theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // The browser keeps nothing for this site.
}

addEventListener('DOMContentLoaded', () => {
  // Absent on plain HTTP.
  if (!navigator.clipboard) return
  for (const pre of document.querySelectorAll('pre')) {
    const button = document.createElement('button')
    button.className = 'copy'
    button.textContent = 'Copy'
    button.ariaLive = 'polite'
    const show = (text) => {
      button.textContent = text
      setTimeout(() => {
        button.textContent = 'Copy'
      }, 2000)
    }
    button.addEventListener('click', () => {
      navigator.clipboard.writeText(pre.textContent.trimEnd()).then(
        () => show('Copied'),
        () => show('Not copied'),
      )
    })
    const box = document.createElement('div')
    box.className = 'code'
    pre.replaceWith(box)
    box.append(pre, button)
  }
})
