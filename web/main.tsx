/** Entry of the dashboard: theme, address, session, then the sign-in page or the shell. */
import { render } from 'preact'
import { onFactorNeeded, onSignedOut } from './api/api.ts'
import { followLinks, linkBelowBase, path } from './app/router.ts'
import { Brand } from './components/marks.tsx'
import { Problem } from './components/problem.tsx'
import { AcceptInvitation, ResetPassword, Setup } from './pages/sign-in/one-time-links.tsx'
import { SecondFactorNeeded, SignIn } from './pages/sign-in/page.tsx'
import { loadEntry, entry, entryError, leave, session } from './app/session.ts'
import { Shell } from './shell.tsx'
import { listenForShortcuts } from './app/shortcuts.ts'
import { startTheme } from './app/theme.ts'

function App() {
  // One-time links work with and without a sign-in.
  if (path.value === '/setup') return <Setup />
  if (path.value === '/reset') return <ResetPassword />
  if (path.value === '/invitation') return <AcceptInvitation />
  if (entry.value === 'signed-in')
    return session.value?.lacksSecondFactor ? <SecondFactorNeeded /> : <Shell />
  if (entry.value === 'signed-out') return <SignIn />
  if (entry.value === 'failed' && entryError.value) {
    return (
      <main class="alone">
        <Brand sizePx={32} />
        <h1>Sightglass</h1>
        <Problem error={entryError.value} onRetry={() => void loadEntry()} />
      </main>
    )
  }
  return null
}

linkBelowBase()
startTheme()
followLinks()
listenForShortcuts()
onSignedOut(() => leave('You were signed out. Sign in to continue where you left off.'))
onFactorNeeded(() => {
  // Several responses may report this; the first one is enough.
  if (session.peek()?.lacksSecondFactor === false)
    session.value = { ...session.peek()!, lacksSecondFactor: true }
})
const root = document.getElementById('app')
if (root) render(<App />, root)
void loadEntry()
