type Failure = NodeJS.ErrnoException

/** The output has no reader any more: a pipe whose reader has ended, a closed terminal. */
const isUnread = ({ code }: Failure): boolean => code === 'EPIPE' || code === 'EIO'

const lost = ({ code }: Failure): string =>
  `millrace: what was printed is lost: stdout cannot be written (${code})\n`

/**
 * After `millrace make 2>&1 | head -1` the output has no reader, but the files are still wanted; so they are
 * when a log is on a disk that is full. The end says when results were lost, and not only unwanted.
 */
export function outliveOutput(): void {
  let told = ''
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', (error: Failure) => {
    if (!isUnread(error)) told ||= lost(error)
  })
  process.on('exit', code => {
    if (told === '') return
    process.stderr.write(told)
    if (code === 0) process.exitCode = 1
  })
}

/** `millrace runs | head -1` closes our output early, which is no error. */
export function endWithoutOutput(): void {
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', (error: Failure) => {
    if (isUnread(error)) process.exit()
    process.stderr.write(lost(error))
    process.exit(1)
  })
}
