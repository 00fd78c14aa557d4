// Random tests begin with the same numbers everywhere, so that a clean clone passes or fails as this one does.
// A hunt is longer and different: SEED=$RANDOM npm test
import fc from 'fast-check'
import './now.mjs'

fc.configureGlobal({ seed: Number(process.env['SEED'] ?? 20261115) })
