/** Texts of the dashboard: settings. */

export const settingsTexts = {
  doctor: {
    title: 'Doctor',
    about: 'Checks DNS, port 25, blocklists, certificates, the clock, the disk and PostgreSQL. Changes nothing. Takes up to 30 seconds.',
    run: 'Run checks',
    running: 'Running checks',
    status: { ok: 'OK', warning: 'Warning', problem: 'Problem', unknown: 'Unknown' },
  },
  installation: {
    title: 'Installation settings',
    version: 'Version',
    about: 'Postrider reads settings from the environment at start. Change them there. Secrets are shown only as set.',
    defaults: 'Settings at their defaults',
    ownersOnly: 'Only owners see the settings of the installation.',
  },
} as const
