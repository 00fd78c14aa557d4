/** Made-up images of a made-up sky, in FITS: tiles that overlap, each with a background of its own. */

/** Degrees per pixel. */
const SCALE = 1 / 3600
const CENTER = { ra: 180, dec: 10 }
/** Share of a tile that its neighbour does not have. */
const STEP = 0.8

interface Star {
  /** Degrees from the centre of the sky. */
  x: number
  y: number
  brightness: number
  width: number
}

/** Numbers that look random and are the same each time. */
function* random(seed: number): Generator<number, never> {
  for (let state = seed >>> 0; ;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    yield state / 2 ** 32
  }
}

function starsOf(across: number): Star[] {
  const next = random(42)
  const draw = (): number => next.next().value
  const count = Math.ceil((across / 60) ** 2)
  return Array.from({ length: count }, () => ({
    x: (draw() - 0.5) * across * SCALE,
    y: (draw() - 0.5) * across * SCALE,
    brightness: 20 + 400 * draw() ** 6,
    width: 1.2 + draw(),
  }))
}

/** The tile in this row and column of `n` x `n`, `size` pixels wide. */
export function tile(row: number, column: number, n: number, size: number): Buffer {
  const step = size * STEP
  const middle = { x: (column - (n - 1) / 2) * step * SCALE, y: (row - (n - 1) / 2) * step * SCALE }
  const next = random(1000 + row * n + column)
  const background = 50 + 40 * next.next().value
  const slope = (next.next().value - 0.5) * 0.05
  const pixels = new Float32Array(size * size)
  for (let i = 0; i < pixels.length; i++) {
    pixels[i] = background + slope * (i % size) + 2 * next.next().value
  }
  for (const star of starsOf((n - 1) * step + size)) paint(pixels, size, star, middle)
  return fits(pixels, size, middle)
}

function paint(pixels: Float32Array, size: number, star: Star, middle: { x: number; y: number }): void {
  const x = (star.x - middle.x) / SCALE + size / 2
  const y = (star.y - middle.y) / SCALE + size / 2
  const reach = 5 * star.width
  if (x < -reach || y < -reach || x > size + reach || y > size + reach) return
  for (let row = Math.max(0, Math.floor(y - reach)); row < Math.min(size, y + reach); row++) {
    for (let column = Math.max(0, Math.floor(x - reach)); column < Math.min(size, x + reach); column++) {
      const distance = (column - x) ** 2 + (row - y) ** 2
      const at = row * size + column
      pixels[at] = (pixels[at] as number) + star.brightness * Math.exp(-distance / (2 * star.width ** 2))
    }
  }
}

function fits(pixels: Float32Array, size: number, middle: { x: number; y: number }): Buffer {
  const dec = CENTER.dec + middle.y
  // Right ascension grows to the left, and its circles are smaller away from the equator.
  const ra = CENTER.ra - middle.x / Math.cos((dec * Math.PI) / 180)
  const cards: [string, string | number | boolean][] = [
    ['SIMPLE', true],
    ['BITPIX', -32],
    ['NAXIS', 2],
    ['NAXIS1', size],
    ['NAXIS2', size],
    ['CTYPE1', 'RA---TAN'],
    ['CTYPE2', 'DEC--TAN'],
    ['CRVAL1', ra],
    ['CRVAL2', dec],
    ['CRPIX1', size / 2 + 0.5],
    ['CRPIX2', size / 2 + 0.5],
    ['CDELT1', -SCALE],
    ['CDELT2', SCALE],
    ['CROTA2', 0],
    ['EQUINOX', 2000],
  ]
  const text = [...cards.map(card), 'END'.padEnd(80)].join('')
  const header = Buffer.from(text.padEnd(Math.ceil(text.length / 2880) * 2880), 'latin1')
  const data = Buffer.alloc(Math.ceil((pixels.length * 4) / 2880) * 2880)
  for (const [i, value] of pixels.entries()) data.writeFloatBE(value, i * 4)
  return Buffer.concat([header, data])
}

function card([name, value]: [string, string | number | boolean]): string {
  const text =
    typeof value === 'string'
      ? `'${value.padEnd(8)}'`
      : (typeof value === 'boolean'
          ? 'T'
          : Number.isInteger(value)
            ? String(value)
            : value.toFixed(10)
        ).padStart(20)
  return `${name.padEnd(8)}= ${text}`.padEnd(80)
}
