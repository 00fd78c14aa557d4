/** The folder beside the user's files in which tasks write; src/storage/staging.ts has more. */
export const STAGING = '.millrace-new'

/** A text with files under the names that the user gave them. */
export const atHome = (text: string): string =>
  text.includes(STAGING) ? text.replace(/\.millrace-new(-\d+)?\/[^/\n]+\//g, '') : text
