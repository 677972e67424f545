/** The error of a report that cannot be read; its message completes "the report" and goes to the reporting server. */
export class UnreadableReport extends Error {}
