interface Kinds {
  isFile(): boolean
  isDirectory(): boolean
  isSymbolicLink(): boolean
  isFIFO(): boolean
  isSocket(): boolean
}

/** What something on a disk is that is no file, folder or link; null for those. */
export function specialKind(found: Kinds): string | null {
  if (found.isFile() || found.isDirectory() || found.isSymbolicLink()) return null
  return found.isFIFO() ? 'a FIFO' : found.isSocket() ? 'a socket' : 'a device'
}
