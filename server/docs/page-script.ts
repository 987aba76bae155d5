/** The script of the reference: the reader's theme, and buttons that copy. Without it everything can still be read. */

export const pageScript = `
const kept = (() => { try { return localStorage.getItem('sightglass.theme') } catch { return null } })()
if (kept === 'light' || kept === 'dark') document.documentElement.dataset.theme = kept

for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = false
  button.addEventListener('click', async () => {
    const text = button.parentElement.querySelector('pre').textContent
    const label = button.textContent
    try {
      await navigator.clipboard.writeText(text)
      button.textContent = 'Copied'
    } catch {
      // Without https the browser keeps the clipboard to itself: select the text, so that a key press copies it.
      getSelection().selectAllChildren(button.parentElement.querySelector('pre'))
      button.textContent = 'Press Ctrl-C'
    }
    setTimeout(() => { button.textContent = label }, 2000)
  })
}
`
