/** Sets up, moves and turns off the second factor of your own account, and shows its recovery codes. */
import './second-factor.css'
import { useSignal } from '@preact/signals'
import { CopyButton } from '../../../components/copy.tsx'
import { Dialog, Field, FormDialog, textOf } from '../../../components/dialog.tsx'
import { Problem, useTask } from '../../../components/problem.tsx'
import { identityApi, type OwnAccount } from '../../../api/identity-api.ts'
import { Moment } from '../../../components/time.tsx'
import { counted } from '../../../text/format.ts'
import { useMemo } from 'preact/hooks'
import { encode } from 'uqr'

interface SecondFactorProps {
  factor: OwnAccount['secondFactor']
  onDone: () => void
  onCodesSaved?: () => void
  plain?: boolean // omit heading and state, where the page already shows both
}

interface Enrollment {
  seed: string
  uri: string
  token: string
}

export function SecondFactor({ factor, onDone, onCodesSaved, plain = false }: SecondFactorProps) {
  const enrollment = useSignal<Enrollment | null>(null)
  const dialog = useSignal<'codes' | 'remove' | null>(null)
  const codes = useSignal<string[] | null>(null)
  const { problem, run } = useTask()
  const begin = () => run(async () => void (enrollment.value = await identityApi.beginSecondFactor()))
  return (
    <>
      {!plain && (
        <>
          <h3>Second factor</h3>
          <State factor={factor} />
        </>
      )}
      {problem.value && <Problem error={problem.value} />}
      <p class="button-row">
        <button type="button" class={plain ? 'button primary' : 'button'} onClick={() => void begin()}>
          {factor === null ? 'Set up a second factor' : 'Switch authenticator app'}
        </button>
        {factor !== null && (
          <>
            <button type="button" class="button" onClick={() => (dialog.value = 'codes')}>
              Replace recovery codes
            </button>
            <button type="button" class="button" onClick={() => (dialog.value = 'remove')}>
              Turn off
            </button>
          </>
        )}
      </p>
      {enrollment.value && (
        <SetDialog
          enrollment={enrollment.value}
          onCodes={(newCodes) => {
            codes.value = newCodes
            onDone()
          }}
          onClose={() => (enrollment.value = null)}
        />
      )}
      {dialog.value && (
        <ChangeDialog
          change={dialog.value}
          onCodes={(newCodes) => (codes.value = newCodes)}
          onDone={onDone}
          onClose={() => (dialog.value = null)}
        />
      )}
      {codes.value && (
        <CodesDialog
          codes={codes.value}
          onClose={() => {
            codes.value = null
            onCodesSaved?.()
          }}
        />
      )}
    </>
  )
}

interface ChangeDialogProps {
  change: 'codes' | 'remove'
  onCodes: (codes: string[]) => void
  onDone: () => void
  onClose: () => void
}

function ChangeDialog({ change, onCodes, onDone, onClose }: ChangeDialogProps) {
  if (change === 'codes') {
    return (
      <PasswordDialog
        title="Replace recovery codes"
        action="Replace codes"
        about="The old codes stop working."
        onPassword={async (password) => {
          onCodes(await identityApi.newRecoveryCodes(password))
          onDone()
        }}
        onClose={onClose}
      />
    )
  }
  return (
    <PasswordDialog
      title="Turn off the second factor"
      action="Turn off"
      about="You will sign in with your password alone."
      onPassword={async (password) => {
        await identityApi.removeSecondFactor(password)
        onDone()
      }}
      onClose={onClose}
    />
  )
}

function State({ factor }: Pick<SecondFactorProps, 'factor'>) {
  return factor === null ? (
    <p>Off. Turn it on to require a code from an authenticator app at sign-in.</p>
  ) : (
    <p>
      On since <Moment iso={factor.since} />. {counted(factor.recoveryLeft, 'recovery code')} left.
    </p>
  )
}

interface SetDialogProps {
  enrollment: Enrollment
  onCodes: (codes: string[]) => void
  onClose: () => void
}

function SetDialog({ enrollment, onCodes, onClose }: SetDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const code = textOf(form, 'code')
    const password = textOf(form, 'password')
    onCodes(await identityApi.setSecondFactor({ token: enrollment.token, code, password }))
  }
  return (
    <FormDialog title="Set up a second factor" action="Turn on" onSubmit={submit} onClose={onClose}>
      <p>
        Scan this code with your authenticator app, enter the key below, or{' '}
        <a href={enrollment.uri} data-native>
          open it on this device
        </a>
        . Then enter the code from the app.
      </p>
      <QrCode text={enrollment.uri} label="QR code for the authenticator app" />
      <div class="secret">
        <code tabIndex={0} aria-label="Setup key">
          {enrollment.seed.replace(/(.{4})(?=.)/g, '$1 ')}
        </code>
        <CopyButton text={enrollment.seed} label="Copy key" />
      </div>
      <Field name="code" label="Code" autocomplete="one-time-code" required autofocus maxLength={7} />
      <Field name="password" label="Your password" type="password" autocomplete="current-password" required />
    </FormDialog>
  )
}

interface PasswordDialogProps {
  title: string
  action: string
  about: string
  onPassword: (password: string) => Promise<void>
  onClose: () => void
}

function PasswordDialog({ title, action, about: description, onPassword, onClose }: PasswordDialogProps) {
  return (
    <FormDialog
      title={title}
      action={action}
      onSubmit={(form) => onPassword(textOf(form, 'password'))}
      onClose={onClose}
    >
      <p>{description}</p>
      <Field
        name="password"
        label="Your password"
        type="password"
        autocomplete="current-password"
        required
        autofocus
      />
    </FormDialog>
  )
}

function CodesDialog({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  return (
    <Dialog title="Your recovery codes" sticky onClose={onClose}>
      <p>
        <strong>Save these codes now.</strong> They are not shown again. Each code signs you in once if you
        lose the app.
      </p>
      <ul class="recovery-codes" aria-label="Recovery codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div class="dialog-foot">
        <CopyButton text={codes.join('\n')} label="Copy codes" primary />
        <button type="button" class="button" onClick={onClose}>
          Done, I saved them
        </button>
      </div>
    </Dialog>
  )
}

const quiet = 4 // squares; readers need the border

export interface QrPath {
  size: number // in squares, with the border
  path: string
}

/** The dark squares of a QR code as one SVG path, one unit per square, with the quiet border that readers need. */
export function qrPath(text: string): QrPath {
  const { data, size } = encode(text, { ecc: 'M', border: quiet })
  const parts: string[] = []
  data.forEach((row, y) => {
    for (let x = 0; x < row.length; x++) {
      if (!row[x]) continue
      const start = x
      while (row[x + 1]) x++
      parts.push(`M${start} ${y}h${x + 1 - start}v1H${start}z`)
    }
  })
  return { size, path: parts.join('') }
}

/** Dark on light in both themes, because many cameras cannot read inverted codes. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { size, path } = useMemo(() => qrPath(text), [text])
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <path d={path} shape-rendering="crispEdges" />
    </svg>
  )
}
