/** Texts of the dashboard: suppressions. */

export const suppressionsTexts = {
  suppressions: {
    ofAll: 'Postrider sends nothing to these addresses. Addresses that you add here count for every tenant.',
    ofTenant: 'Postrider sends nothing to these addresses for this tenant.',
    add: 'Add address',
    sources: { manual: 'Manual', automatic: 'Automatic' },
    openEmail: (address: string) => `The email to ${address}`,
    contains: 'Address contains',
    names: { address: 'Address', tenant: 'Tenant', reason: 'Reason', source: 'Source', since: 'Created' },
    empty: 'No suppressed addresses.',
    address: 'Address',
    reason: 'Reason',
    anyReason: 'Any reason',
    reasons: {
      'hard fail': 'Hard failure',
      'too many soft fails': 'Too many soft failures',
      bounce: 'Bounce',
      complaint: 'Complaint',
      unsubscribe: 'Unsubscribe',
    },
    addTitle: 'Suppress an address',
    addAction: 'Suppress',
    remove: 'Delete',
    removeOf: (address: string) => `Delete ${address}`,
    removeTitle: (address: string) => `Delete ${address} from the list?`,
    removeAllTitle: (count: number) => `Delete ${count} ${count === 1 ? 'address' : 'addresses'} from the list?`,
    removeText: 'Postrider sends to this address again. If it failed or complained before, it may do so again.',
    import: 'Import CSV',
    importHelp: 'Column 1: address. Column 2 (optional): reason. A first line without an address is skipped.',
    file: 'File',
    none: 'The file contains no addresses.',
    done: (added: number, updated: number, failed: number) =>
      `${added.toLocaleString()} added, ${updated.toLocaleString()} already listed, ${failed.toLocaleString()} invalid.`,
  },
} as const
