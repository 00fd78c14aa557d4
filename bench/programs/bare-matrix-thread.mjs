// Node 20 does not hand tsx down to threads; this one loads it itself.
import { register } from 'tsx/esm/api'

register()
await import('./bare-matrix.ts')
