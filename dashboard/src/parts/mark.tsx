/** The mark of Postrider; public/icon.svg is the same. */

/** A letter, in the yellow of the mail coaches. */
export const Mark = () => (
  <svg viewBox="0 0 24 24" aria-hidden="true" className="size-6 shrink-0 text-brand">
    <rect width="24" height="24" rx="6" fill="currentColor" />
    <path d="M5.5 7.5h13v9.5h-13zM5.5 8l6.5 5 6.5-5" fill="none" className="stroke-on-brand" strokeWidth="1.7" strokeLinejoin="round" />
  </svg>
)
