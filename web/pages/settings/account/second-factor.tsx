/** The second factor of the own account: setting it with an authenticator app, recovery codes, taking it away. */
import { useSignal } from '@preact/signals'
import { CopyButton } from '../../../components/copy-button.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { QrCode } from '../../../components/qr-code.tsx'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { identityApi, type OwnAccount } from '../../../api/identity-api.ts'
import { Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'
import { Moment } from '../../../components/moment.tsx'

interface SecondFactorProps {
  factor: OwnAccount['secondFactor']
  onDone: () => void
  onCodesKept?: () => void
  plain?: boolean // without heading and state, where the page says both
}

interface Begun {
  seed: string
  uri: string
  token: string
}

export function SecondFactor({ factor, onDone, onCodesKept, plain = false }: SecondFactorProps) {
  const begun = useSignal<Begun | null>(null)
  const asking = useSignal<'codes' | 'remove' | null>(null)
  const codes = useSignal<string[] | null>(null)
  const { problem, run } = useTask()
  const begin = () => run(async () => void (begun.value = await identityApi.beginSecondFactor()))
  return (
    <>
      {!plain && (
        <>
          <h3>Second factor</h3>
          <State factor={factor} />
        </>
      )}
      {problem.value && <Problem error={problem.value} />}
      <p>
        <button type="button" class={plain ? 'button primary' : 'button'} onClick={() => void begin()}>
          {factor === null ? 'Set up a second factor' : 'Move to another app'}
        </button>{' '}
        {factor !== null && (
          <>
            <button type="button" class="button" onClick={() => (asking.value = 'codes')}>
              New recovery codes
            </button>{' '}
            <button type="button" class="button" onClick={() => (asking.value = 'remove')}>
              Turn off
            </button>
          </>
        )}
      </p>
      {begun.value && (
        <SetDialog
          begun={begun.value}
          onCodes={(made) => {
            codes.value = made
            onDone()
          }}
          onClose={() => (begun.value = null)}
        />
      )}
      {asking.value && (
        <ChangeDialog
          change={asking.value}
          onCodes={(made) => (codes.value = made)}
          onDone={onDone}
          onClose={() => (asking.value = null)}
        />
      )}
      {codes.value && (
        <CodesDialog
          codes={codes.value}
          onClose={() => {
            codes.value = null
            onCodesKept?.()
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
        title="New recovery codes"
        action="Make new codes"
        about="The old ones stop working."
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
      about="From then on the password alone signs in."
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
    <p>
      Off. With it, signing in also asks for a code from an app on your phone, so that a stolen password is
      not enough.
    </p>
  ) : (
    <p>
      On since <Moment iso={factor.since} />. {factor.recoveryLeft} recovery codes are left.
    </p>
  )
}

interface SetDialogProps {
  begun: Begun
  onCodes: (codes: string[]) => void
  onClose: () => void
}

function SetDialog({ begun, onCodes, onClose }: SetDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const [code, password] = [textOf(form, 'code'), textOf(form, 'password')]
    onCodes(await identityApi.setSecondFactor({ token: begun.token, code, password }))
  }
  return (
    <FormDialog title="Set up a second factor" action="Turn on" onSubmit={submit} onClose={onClose}>
      <p>
        Scan this with your authenticator app, give it the key below, or{' '}
        <a href={begun.uri} data-native>
          open it on this device
        </a>
        . Then type the code that the app shows.
      </p>
      <QrCode text={begun.uri} label="Picture for the app to scan" />
      <div class="secret">
        <code tabIndex={0} aria-label="The key for the app">
          {begun.seed.replace(/(.{4})(?=.)/g, '$1 ')}
        </code>
        <CopyButton text={begun.seed} label="Copy key" />
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

function PasswordDialog({ title, action, about, onPassword, onClose }: PasswordDialogProps) {
  return (
    <FormDialog
      title={title}
      action={action}
      onSubmit={(form) => onPassword(textOf(form, 'password'))}
      onClose={onClose}
    >
      <p>{about}</p>
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
        <strong>Keep them now;</strong> they are not shown again. Each signs you in once when the app is lost.
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
