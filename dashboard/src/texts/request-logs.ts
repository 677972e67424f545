/** Texts of the dashboard: request logs. */

export const requestLogsTexts = {
  logs: {
    answer: 'Response',
    outcomes: { any: 'Any response', success: 'Success', error: 'Error' },
    about: 'Requests to the API, with their bodies. Requests that only read for the dashboard are left out.',
    names: {
      time: 'Time',
      response: 'Response',
      request: 'Request',
      endpoint: 'Endpoint',
      error: 'Error',
      key: 'Key',
      duration: 'Duration',
      requestId: 'Request ID',
      ipAddress: 'IP address',
      userAgent: 'User agent',
    },
    filters: {
      requestId: 'Request ID contains',
      endpoint: 'Endpoint',
      statusCode: 'Status code',
      status: 'Response',
      credentialId: 'Key',
      within: 'Time',
      after: 'From',
      before: 'To',
    },
    emptyFiltered: 'No requests match.',
    examples: { requestId: 'req_…', endpoint: 'emails.send' },
    noBody: 'No body.',
    empty: 'No requests yet. API requests appear here.',
    email: 'Email',
    request: 'Request',
    requestBody: 'Request body',
    answerBody: 'Response body',
  },
} as const
