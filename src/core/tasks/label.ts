/** A label is shown in one line beside others. */
const LONGEST = 60

/** One line, without what would move the cursor. */
export function tidyLabel(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line
}
