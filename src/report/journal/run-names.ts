const ADJECTIVES =
  `amber ample balmy brackish breezy bright brisk calm clear cloudy cool crisp dappled dewy drifting
early eddying even fair fleet flowing fresh frosty gentle glassy golden hazy high hushed icy lively lucid mellow
mild misty mossy noble pale placid plain quick quiet rapid rippling rolling running rushing sandy serene shady
silver sleek smooth steady still stony sunny swift thawing tidal turning upland vernal windy`.split(/\s+/)

const NOUNS =
  `avocet bittern breeze brook burn bywash cascade chute crake creek curlew current dam dipper drizzle
dunlin eddy egret estuary falls flume ford gale gauge godwit grebe grist heron hopper kestrel kingfisher lapwing
leat lock mallard martin mere millpond millrace millstone monsoon oriole osprey otter paddle penstock pintail
plover rapids reed sluice snipe spillway stork stream swallow tailrace teal tern thaw wagtail weir wharf
wren`.split(/\s+/)

/**
 * A name that people can say and remember, such as `brisk-otter`. When it is taken a number is added, so
 * there is always one. `random` gives numbers from 0 up to 1, like Math.random.
 */
export function newRunName(existing: Iterable<string>, random: () => number): string {
  const taken = new Set(existing)
  const pick = (words: string[]): string => words[Math.floor(random() * words.length) % words.length]!
  const name = `${pick(ADJECTIVES)}-${pick(NOUNS)}`
  if (!taken.has(name)) return name
  for (let number = 2; ; number++) {
    const numbered = `${name}-${number}`
    if (!taken.has(numbered)) return numbered
  }
}
