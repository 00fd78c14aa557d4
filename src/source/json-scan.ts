export interface Place {
  line: number
  column: number
}

export interface JsonProblem {
  at: Place
  message: string
  fix: string
}

/** Ends reading: what follows the mistake cannot be read with any sense. */
export class Stop extends Error {}

export const placeText = (at: Place): string => `line ${at.line}, column ${at.column}`

/** Walks over text, knows where it is, and reports comments instead of failing at them. */
export class Scanner {
  readonly problems: JsonProblem[] = []
  protected readonly text: string
  protected index = 0
  private line = 1
  private lineStart = 0

  constructor(text: string) {
    this.text = text
    if (text.charCodeAt(0) === 0xfeff) {
      this.index = 1 // a byte order mark is not part of the first line
      this.lineStart = 1
    }
  }

  protected here(): Place {
    return { line: this.line, column: this.index - this.lineStart + 1 }
  }

  protected report(at: Place, message: string, fix: string): void {
    this.problems.push({ at, message, fix })
  }

  protected stop(at: Place, message: string, fix: string): never {
    this.report(at, message, fix)
    throw new Stop(message)
  }

  protected step(): void {
    if (this.text[this.index] === '\n') {
      this.line++
      this.lineStart = this.index + 1
    }
    this.index++
  }

  protected skip(): void {
    for (;;) {
      const char = this.text[this.index]
      if (char === ' ' || char === '\t' || char === '\n' || char === '\r') this.step()
      else if (char === '/' || char === '#') this.comment()
      else return
    }
  }

  private comment(): void {
    const at = this.here()
    const opening = this.text[this.index] === '#' ? '#' : this.text.slice(this.index, this.index + 2)
    if (opening !== '#' && opening !== '//' && opening !== '/*') {
      this.stop(at, "'/' is not expected here", 'strings need double quotes: "dir/file"')
    }
    this.report(at, `a comment ('${opening}'): JSON has none`, 'remove the comment')
    const end = opening === '/*' ? '*/' : '\n'
    while (this.index < this.text.length && !this.text.startsWith(end, this.index)) this.step()
    for (let n = 0; n < end.length && this.index < this.text.length; n++) this.step()
  }
}
