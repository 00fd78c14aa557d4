/** Like Promise.all over a map, with limited concurrency: each call may hold a file open. */
export async function mapAtOnce<T, R>(
  most: number,
  items: readonly T[],
  action: (item: T, index: number) => Promise<R> | R,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const work = async (): Promise<void> => {
    try {
      while (next < items.length) {
        const i = next++
        results[i] = await action(items[i] as T, i)
      }
    } catch (error) {
      next = items.length
      throw error
    }
  }
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, work))
  return results
}
