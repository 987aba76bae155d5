/** Writes the systemd unit: a dynamic user, one writable folder, no other access to the machine. */

interface UnitOptions {
  executable: string // absolute
  flags: string[] // of serve, for ExecStart
  lowPort: boolean // whether it listens below port 1024
  writableFolders: string[] // besides the data folder, such as the one of backups
  runtimeFolder: boolean // whether a listener has a socket in /run/sightglass
}

export const unitName = 'sightglass.service'
export const stateFolder = '/var/lib/sightglass'
export const runtimeFolderPath = '/run/sightglass'
export const environmentFile = '/etc/sightglass/environment'

export function unitText({
  executable,
  flags,
  lowPort,
  writableFolders,
  runtimeFolder,
}: UnitOptions): string {
  const capability = lowPort ? 'CAP_NET_BIND_SERVICE' : ''
  const lines = [
    '[Unit]',
    'Description=Sightglass, a record of the AI agents that visit your site',
    'Wants=network-online.target',
    'After=network-online.target',
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${[executable, 'serve', ...flags].map(quoted).join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    '# Secrets such as SIGHTGLASS_BACKUP_PASSPHRASE=…, in a file with mode 0600.',
    `EnvironmentFile=-${environmentFile}`,
    '# Variables that change what the executable does.',
    'UnsetEnvironment=BUN_BE_BUN BUN_OPTIONS NODE_OPTIONS LD_PRELOAD',
    '# The server exits to be restarted when memory runs out.',
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
          '# Folder of its socket. Set Group= to the group of the proxy to let it connect.',
          'RuntimeDirectory=sightglass',
          'RuntimeDirectoryMode=0750',
        ]
      : []),
    ...writableFolders.map((folder) => `ReadWritePaths=${quoted(folder)}`),
    '',
    `AmbientCapabilities=${capability}`,
    `CapabilityBoundingSet=${capability}`,
    // CAP_NET_BIND_SERVICE has no effect in a user namespace of the service.
    ...(lowPort ? [] : ['PrivateUsers=yes']),
    ...hardening,
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ]
  return lines.join('\n')
}

/** No MemoryDenyWriteExecute: the runtime compiles at run time. */
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

/** Quotes an argument for systemd, with its specifiers and variables escaped. */
function quoted(text: string): string {
  const safe = text.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w@%+=:,./$-]+$/.test(safe) ? safe : `"${safe.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
