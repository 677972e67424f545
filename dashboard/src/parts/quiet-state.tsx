/** A normal state in a list: words and a small dot, so that the badges of the others stand out. */
export const QuietState = ({ children }: { children: string }) => (
  <span className="inline-flex items-center gap-1.5 text-sm whitespace-nowrap text-soft">
    <span aria-hidden="true" className="size-1.5 rounded-full bg-chart-good" />
    {children}
  </span>
)
