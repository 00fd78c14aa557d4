/** The value, or an error that says what did not come in time. */
export async function within<T>(milliseconds: number, value: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`${what} did not come within ${milliseconds / 1000} s`)),
      milliseconds,
    )
  })
  try {
    return await Promise.race([value, late])
  } finally {
    clearTimeout(timer)
  }
}
