/**
 * Whether it pays to look out for something instead of sleeping. It does not where others need the CPU: after
 * a few times in vain it is left for a while.
 */
export class SpinBackoff {
  #inVain = 0
  #pause = 0

  /** Asked each time before looking out. */
  get maySpin(): boolean {
    if (this.#pause === 0) return true
    this.#pause--
    return false
  }

  found(): void {
    this.#inVain = 0
  }

  spunInVain(): void {
    if (++this.#inVain < 3) return
    this.#inVain = 0
    this.#pause = 100
  }
}
