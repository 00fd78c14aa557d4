let enabled: Promise<void> | null = null

/** Makes this thread load TypeScript, whichever way it is imported. Twice does no more than once. */
export function enableTypescript(): Promise<void> {
  return (enabled ??= enable())
}

async function enable(): Promise<void> {
  const [esm, cjs] = await Promise.all([import('tsx/esm/api'), import('tsx/cjs/api')])
  cjs.register()
  esm.register()
}

export const isTypescript = (path: string): boolean => /\.[cm]?tsx?$|\.jsx$/.test(path)
