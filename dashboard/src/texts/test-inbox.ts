/** Texts of the dashboard: test inbox. */

export const testInboxTexts = {
  inbox: {
    empty: 'No test mail. Send an email with a test key: it appears here within seconds.',
    none: 'Select an email to read it.',
    search: 'Recipient, sender or subject contains',
    clear: 'Clear inbox',
    delete: 'Delete',
    deleted: 'Deleted from the inbox. It stays in the list of emails.',
    fromTo: (from: string, to: string) => `${from} → ${to}`,
    from: 'From',
    to: 'To',
    received: 'Received',
    email: 'Status',
    open: 'Open in Emails',
    example: 'Address or words of the subject',
    clearAsk: 'Clear the inbox?',
    clearText: 'The mail is removed from the inbox. It stays in the list of emails.',
    promote: 'Send as live mail',
    promoteAsk: 'Send this as live mail?',
    promoteText: (to: string) => `Postrider sends it from its verified domain to this recipient only: ${to}`,
    promoted: 'Accepted as a live email.',
    links: 'Links',
    noLinks: 'No links.',
    checkLinks: 'Check links',
    checkingLinks: 'Checking links',
    checkHelp:
      'Postrider requests each link once, without a login, and follows no redirect. Some links act when they are opened, such as an unsubscribe link.',
    checkedLinks: (broken: number, all: number) =>
      broken === 0 ? `None of ${all} links is broken.` : `${broken} of ${all} links are broken.`,
    linkStates: { works: 'Works', refuses: 'Refuses', broken: 'Broken', unchecked: 'Not checked' },
    kept: 'New mail appears at once, and is shown for 7 days.',
    unread: 'Unread',
  },
} as const
