import { MillraceError } from '../../core/errors.ts'

/** The value of the variable that an option names as '$NAME'. */
export function fromEnvironment(what: string, option: string, name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '') {
    throw new MillraceError('MR_ENV', `${what}: ${option} is '$${name}', but ${name} is not set`)
  }
  return value
}
