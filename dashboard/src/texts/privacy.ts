/** Texts of the dashboard: the privacy of a tenant. */

export const privacyTexts = {
  privacy: {
    open: 'Privacy',
    title: (name: string) => `Privacy of ${name}`,
    about: 'Recipient, sender, subject and status are not contents: they stay as long as the record of the email.',
    unchanged: 'As the installation',
    never: 'Never',
    /** By the names of the API. */
    fields: {
      contentDays: {
        label: 'Days for which contents are kept',
        help: 'Also bodies in the request log. 0: until the email is final. Empty: as the installation.',
      },
      hashAddressesAfterDays: {
        label: 'Days until addresses of recipients are hashed',
        help: 'From acceptance. This cannot be undone. Empty: never.',
      },
      recordDays: {
        label: 'Days for which records are kept',
        help: 'From acceptance. Then an email keeps its id, times and status. This cannot be undone. Empty: as the installation.',
      },
      contentVisibleTo: {
        label: 'Members who see contents',
        help: 'Bodies, headers, attachments, received mail, and bodies of requests and webhooks. Keys are not members.',
      },
    },
    audiences: { everyone: 'All roles', admins: 'Admins and owners', owners: 'Owners' },
    saved: 'The privacy settings were saved.',
    left: 'Data that is left',
    count: 'Count the data that is left',
    rows: (rows: number) => rows.toLocaleString(),
    since: 'oldest:',
    kinds: {
      contents: 'Contents of emails',
      emails: 'Emails',
      records: 'Emails with a record',
      attempts: 'Delivery attempts',
      requests: 'Requests in the log',
      requestBodies: 'Requests with bodies',
      events: 'Events',
      opensAndClicks: 'Opens and clicks',
      webhookDeliveries: 'Webhook deliveries',
      receivedMessages: 'Received messages',
    },
    hidden: 'Hidden for your role. An owner decides which members see contents.',
  },
} as const
