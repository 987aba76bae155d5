/** The systemd unit: a user of its own made by systemd, one writable folder, and nothing else of the machine. */

export interface UnitWanted {
  executable: string // absolute
  flags: string[] // of serve, for ExecStart
  /** Whether a port below 1024 is asked for. */
  lowPort: boolean
  /** Further folders that are written, e.g. of backups. */
  writableFolders: string[]
  /** Whether it keeps a socket in the folder below. */
  runtimeFolder: boolean
}

export const unitName = 'sightglass.service'
export const stateFolder = '/var/lib/sightglass'
export const runtimeFolderPath = '/run/sightglass'
export const environmentFile = '/etc/sightglass/environment'

export function unitText({ executable, flags, lowPort, writableFolders, runtimeFolder }: UnitWanted): string {
  const capability = lowPort ? 'CAP_NET_BIND_SERVICE' : ''
  const lines = [
    '[Unit]',
    'Description=Sightglass, a window on the AI agents that visit your site',
    'Wants=network-online.target',
    'After=network-online.target',
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${[executable, 'serve', ...flags].map(quoted).join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    '# Passwords and passphrases, such as SIGHTGLASS_BACKUP_PASSPHRASE=…, with mode 0600.',
    `EnvironmentFile=-${environmentFile}`,
    '# Variables that change how the executable runs.',
    'UnsetEnvironment=BUN_BE_BUN BUN_OPTIONS NODE_OPTIONS LD_PRELOAD',
    '# The server exits when memory runs out, so that it is restarted.',
    'Restart=always',
    'RestartSec=2',
    'TimeoutStopSec=40',
    'LimitNOFILE=65536',
    '',
    'DynamicUser=yes',
    'User=sightglass',
    'StateDirectory=sightglass',
    'StateDirectoryMode=0700',
    'UMask=0077',
    ...(runtimeFolder
      ? [
          '# Its socket; with Group= of the proxy that proxy may write to it.',
          'RuntimeDirectory=sightglass',
          'RuntimeDirectoryMode=0750',
        ]
      : []),
    ...writableFolders.map((folder) => `ReadWritePaths=${quoted(folder)}`),
    '',
    `AmbientCapabilities=${capability}`,
    `CapabilityBoundingSet=${capability}`,
    // A port below 1024 belongs to the machine's users, not to a service's own ones.
    ...(lowPort ? [] : ['PrivateUsers=yes']),
    ...hardening,
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ]
  return lines.join('\n')
}

/** Memory that is both written and executed is left allowed: the runtime compiles while it runs. */
const hardening = [
  'NoNewPrivileges=yes',
  'ProtectSystem=strict',
  'ProtectHome=yes',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectProc=invisible',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX',
  'RestrictNamespaces=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RemoveIPC=yes',
  'LockPersonality=yes',
  'SystemCallArchitectures=native',
  'SystemCallFilter=@system-service',
  'SystemCallFilter=~@privileged',
  'SystemCallErrorNumber=EPERM',
]

/** An argument as systemd reads it: its specifiers and variables are left out of it. */
function quoted(text: string): string {
  const safe = text.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w@%+=:,./$-]+$/.test(safe) ? safe : `"${safe.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
