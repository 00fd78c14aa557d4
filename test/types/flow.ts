/** Checked by `tsc -p tsconfig.test.json`, never run: what must compile does, what must not does not. */
import { expand, protect, rule } from 'millrace/flow'
import * as flow from 'millrace/flow'

interface Setting {
  quality: number
}
const setting: Setting = { quality: 3 }

rule('out/{name}-{part}', 'in/{name}', { uses: ({ name, part }) => [name.length, part] }, ({ out }) => [out])
rule('out/{name}', 'in/{name}', { uses: setting }, ({ out }) => [out])
rule('out/{name}', 'in/{name}', { uses: [1, 'a', null] }, ({ out }) => [out])
rule('out/{name}', 'in/{name}', { uses: 3 }, ({ out }) => [out])
// @ts-expect-error The rule has no such wildcard.
rule('out/{name}', 'in/{name}', { uses: ({ part }) => part }, ({ out }) => [out])
rule(protect('out/{name}'), expand('in/{i}', { i: 1 }), ({ out, wildcards: { name } }) => [out, name])
rule(flow.protected('out/{name}'), [], ({ out }) => [out])
