/** A square mesh that is cut into sub-domains, and a solver for each: u'' = f on a grid, with u = 0 around it. */

export interface Domain {
  number: number
  width: number
  /** The right-hand side, row by row. */
  load: Float64Array
}

/**
 * Cuts the mesh one sub-domain after the other. Where the next cut goes depends on how the load is spread,
 * which is smoothed a number of times first: that is the work of the decomposition.
 */
export function* decompose(parts: number, width: number, sweeps: number): Generator<Domain> {
  for (let number = 0; number < parts; number++) {
    const load = new Float64Array(width * width)
    for (let i = 0; i < load.length; i++) load[i] = Math.sin((i * (number + 1)) % 97)
    relax(load, new Float64Array(width * width), width, sweeps)
    yield { number, width, load }
  }
}

/** Gauss-Seidel sweeps; returns the norm of the solution. */
export function solve({ width, load }: Domain, sweeps: number): number {
  const u = new Float64Array(width * width)
  relax(u, load, width, sweeps)
  let sum = 0
  for (const value of u) sum += value * value
  return Math.sqrt(sum)
}

function relax(u: Float64Array, load: Float64Array, width: number, sweeps: number): void {
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (let y = 1; y < width - 1; y++) {
      for (let x = 1; x < width - 1; x++) {
        const i = y * width + x
        u[i] =
          0.25 *
          ((u[i - 1] as number) +
            (u[i + 1] as number) +
            (u[i - width] as number) +
            (u[i + width] as number) -
            (load[i] as number))
      }
    }
  }
}
