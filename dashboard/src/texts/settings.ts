/** Texts of the dashboard: settings. */

export const settingsTexts = {
  doctor: {
    title: 'System check',
    check: 'Check this installation',
    about:
      'Checks DNS, port 25, blocklists, certificates, the clock, the disk and PostgreSQL, as `postrider doctor` does. Changes nothing. Takes up to 30 seconds.',
    run: 'Run checks',
    running: 'Running checks',
    last: 'Last run:',
    status: { ok: 'OK', warning: 'Warning', problem: 'Problem', unknown: 'Unknown' },
  },
  installation: {
    title: 'Installation settings',
    version: 'Version',
    about: 'Postrider reads settings from the environment at start. Change them there. Secrets show only that they are set.',
    defaults: 'Settings at their defaults',
    ownersOnly: 'Only owners see the settings of the installation.',
  },
} as const
