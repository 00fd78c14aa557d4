/** Values as OTLP has them in JSON: whole numbers of 64 bits are text. */
export interface Attribute {
  key: string
  value: { stringValue: string } | { intValue: string } | { doubleValue: number } | { boolValue: boolean }
}

export function attributes(values: Record<string, string | number | boolean | undefined>): Attribute[] {
  return Object.entries(values).flatMap(([key, value]): Attribute[] => {
    if (value === undefined) return []
    if (typeof value === 'string') return [{ key, value: { stringValue: value } }]
    if (typeof value === 'boolean') return [{ key, value: { boolValue: value } }]
    return [
      { key, value: Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value } },
    ]
  })
}

/** Nanoseconds since 1970, of a moment that is `at` milliseconds after `startMs`. */
export const nano = (startMs: number, at: number): string =>
  (BigInt(Math.round(startMs)) * 1_000_000n + BigInt(Math.round(at * 1e6))).toString()
