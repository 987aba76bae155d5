/** The dialog that lists the keyboard shortcuts of the current page. */
import { shortcutsOpen } from '../app/shell-state.ts'
import { shortcuts } from '../app/shortcuts.ts'
import { Dialog } from './dialog.tsx'
import './palette.css'

export function ShortcutList() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (shortcutsOpen.value = false)}>
      <dl class="shortcut-list">
        {shortcuts.value.map((shortcut) => (
          <>
            <dt>
              <kbd>{shortcut.shown}</kbd>
            </dt>
            <dd>{shortcut.does}</dd>
          </>
        ))}
      </dl>
      <div class="dialog-foot">
        <button type="button" class="button" data-first-focus onClick={() => (shortcutsOpen.value = false)}>
          Close
        </button>
      </div>
    </Dialog>
  )
}
