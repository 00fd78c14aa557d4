import { DECLARES, EXPANSION, VALUE } from './builtins.ts'
import { HereDocument } from './here-document.ts'
import { isInterpreter, runsInput } from './interpreters.ts'
import type { Quoting } from './quote.ts'
import { SimpleCommand, evaluated, mistaken } from './simple-command.ts'
import type { Spot } from './simple-command.ts'

/** What can be put in at one place of a command, and how it is written there. */
export interface Place {
  /** Null where nothing can be put in. */
  readonly quoting: Quoting | null
  /** Why only a number can be put in, or null. */
  readonly onlyNumber: string | null
  /** What is wrong with this very value there, or null. */
  readonly mistaken: (value: string) => string | null
}

type Frame =
  /** The whole, `(…)`, or `$(…)`, in which the end of a here-document is another matter. */
  | { readonly kind: 'commands'; command: SimpleCommand; readonly isSubstitution: boolean }
  | { readonly kind: 'single' | 'ansi' | 'double' | 'backquote' }
  /** `${…}`; the text since it began. */
  | { readonly kind: 'braces'; readonly isQuoted: boolean; text: string }
  /** `((…))`, and how many brackets are open in it. */
  | { readonly kind: 'math'; depth: number; hasShift: boolean }
  /** `name=(…)`, and its word. */
  | { readonly kind: 'list'; word: string }

type Commands = Extract<Frame, { kind: 'commands' }>

interface Found {
  readonly quoting: Quoting | null
  readonly onlyNumber: string | null
  readonly spot: Spot | null
}

/** `${x:-word}` and its like, in which a word is as elsewhere. */
const DEFAULT = /^(?:\w+|[@*#?$!-]):?[-=?+]/
/** `${x%word}`: quoted as usual, but not so inside double quotes. */
const TRIMMED = /^(?:\w+)(?:##?|%%?)/
/** `${!x}`, which takes the value of x for a name. */
const INDIRECT = /^![A-Za-z_]\w*(?![\w@*]|\[[@*]\])/
/** What may stand before a value that is not quoted. */
const NO_SYNTAX = /^[\w@%+=:,./\0-]*$/

/**
 * Reads shell text piece by piece and finds out what may be put in between: how it is quoted, and whether the shell or
 * a program would evaluate it even so. Where bash and other shells do not agree on what a text means, or where it takes a
 * whole shell to know, nothing more can be put in.
 */
export class ShellScanner {
  /** The innermost last. */
  readonly #frames: Frame[]
  readonly #commands: SimpleCommand[] = []
  readonly #found: Found[] = []
  /** Those that begin with the next line, and the frame in which that has to come. */
  readonly #documents: { readonly document: HereDocument; readonly owner: Commands; readonly spot: Spot }[] =
    []
  #isInDocument = false
  #isInComment = false
  #isLost = false
  /** What is put in next would belong to a `$` or a backslash. */
  #isOpenEnded = false
  /** An assignment may evaluate what is assigned. */
  #evaluatesAll = false
  /** What a command in `<(…)` prints is run by a shell. */
  #runsFile = false

  constructor() {
    this.#frames = [{ kind: 'commands', command: this.#begin(false), isSubstitution: true }]
  }

  /** Reads a piece; a value follows. */
  read(text: string): void {
    this.#scan(text)
    this.#found.push(this.#find())
    this.#isOpenEnded = false
    if (this.#isInDocument) this.#documents[0]?.document.interpolated()
    else this.#put(VALUE)
  }

  /** Shell text can be put in after this piece: it is not quoted there. */
  isPlainAfter(text: string): boolean {
    this.#scan(text)
    const isCode = this.#top.kind === 'commands' || this.#top.kind === 'list'
    return isCode && !this.#isLost && !this.#isOpenEnded && !this.#isInComment && !this.#isInDocument
  }

  /** Reads the last piece, and says what can be put in between the pieces. */
  finish(text: string): Place[] {
    this.#scan(text)
    for (const { command } of this.#frames.filter(frame => frame.kind === 'commands')) command.endWord()
    const commands = this.#commands
    this.#evaluatesAll ||= commands.some(
      ({ name, words }) => DECLARES.has(name) && words.some(word => /^[-+]\w*[in]/.test(word)),
    )
    const runsPiped = this.#runsFile || commands.some(({ isPiped, words }) => isPiped && runsInput(words))
    return this.#found.map(({ quoting, onlyNumber, spot }) => ({
      quoting,
      onlyNumber: onlyNumber ?? this.#evaluated(quoting, spot, runsPiped),
      mistaken: value => {
        // Bash reads these even inside "${ }".
        if (quoting === 'braces' && /'|[<>]\(|^\(/.test(value)) return 'has a quote or a <( ) inside "${ }"'
        return spot && !(quoting instanceof HereDocument) ? mistaken(spot, value) : null
      },
    }))
  }

  #evaluated(quoting: Quoting | null, spot: Spot | null, runsPiped: boolean): string | null {
    if (this.#evaluatesAll)
      return 'stands in a text with declare -i, declare -n or ${!…}, which evaluate values'
    if (!spot) return null
    const isInput = quoting instanceof HereDocument
    const { words, name } = spot.command
    if (isInput && runsInput(words)) return 'is read as a program'
    if (runsPiped && (isInput || spot.redirection === '<<<' || name === 'echo' || name === 'printf'))
      return 'is read as a program'
    return isInput ? null : evaluated(spot)
  }

  #find(): Found {
    const found = (quoting: Quoting | null, onlyNumber: string | null = null): Found => ({
      quoting,
      onlyNumber,
      spot: this.#isLost ? null : this.#innermost.command.spot,
    })
    if (this.#isLost || this.#isOpenEnded || this.#isInComment) return found(null)
    const [begun] = this.#documents
    if (this.#isInDocument && begun) {
      const { document, spot } = begun
      return { quoting: document.isInCommand ? null : document, onlyNumber: null, spot }
    }
    const top = this.#top
    switch (top.kind) {
      case 'commands': {
        const { word, before } = top.command.spot
        return found(word !== 0 && NO_SYNTAX.test(before) ? 'bare' : 'plain')
      }
      case 'list':
        return /^\[[^\]]*$/.test(top.word)
          ? found('plain', 'is a subscript, which is evaluated')
          : { quoting: NO_SYNTAX.test(top.word) ? 'bare' : 'plain', onlyNumber: null, spot: null }
      case 'braces':
        if (DEFAULT.test(top.text)) return found(top.isQuoted ? 'braces' : 'plain')
        return found(
          top.isQuoted ? 'braces' : 'plain',
          !top.isQuoted && TRIMMED.test(top.text) ? null : 'stands in ${ }, where it would be evaluated',
        )
      case 'math':
        return found('arithmetic', 'stands in arithmetic')
      case 'single':
      case 'double':
        return found(top.kind)
      default:
        return found(null)
    }
  }

  get #top(): Frame {
    return this.#frames.at(-1) as Frame
  }

  /** The commands in which we are. */
  get #innermost(): Commands {
    return this.#frames.findLast(frame => frame.kind === 'commands') as Commands
  }

  get #substitution(): Commands {
    return this.#frames.findLast(frame => frame.kind === 'commands' && frame.isSubstitution) as Commands
  }

  #begin(isPiped: boolean): SimpleCommand {
    const command = new SimpleCommand(isPiped)
    this.#commands.push(command)
    return command
  }

  /** Text of a word. */
  #put(text: string): void {
    const top = this.#top
    if (top.kind === 'list') top.word += text
    else this.#innermost.command.add(text)
  }

  #scan(text: string): void {
    for (let i = 0; i < text.length && !this.#isLost;) {
      const [document] = this.#documents
      if (this.#isInDocument && document) {
        if (document.document.read(text[i] as string, text[i + 1])) this.#documents.shift()
        this.#isInDocument = this.#documents.length > 0
        i++
      } else if (this.#isInComment) {
        if (text[i] === '\n') this.#isInComment = false
        else i++
      } else i += this.#step(text, i)
    }
  }

  /** Returns how many characters it took. */
  #step(text: string, at: number): number {
    const top = this.#top
    const char = text[at] as string
    if (char === '\n' && top.kind !== 'commands' && this.#documents.length > 0) this.#isLost = true
    switch (top.kind) {
      case 'single':
        return this.#quoted(char, "'")
      case 'ansi':
        // Shells that do not know $'…' take \' for its end.
        if (char === '\\') this.#isLost ||= text[at + 1] === "'"
        return char === '\\' ? 2 : this.#quoted(char, "'")
      case 'backquote':
        if (char === '`') this.#frames.pop()
        return char === '\\' ? 2 : 1
      case 'double':
        if (char === '\\' || char === '$' || char === '`') return this.#special(text, at)
        return this.#quoted(char, '"')
      case 'braces':
        return this.#inBraces(top, text, at)
      case 'math':
        return this.#inMath(top, text, at)
      case 'list':
        return this.#inList(top, text, at)
      case 'commands':
        return this.#inCommands(top, text, at)
    }
  }

  #quoted(char: string, end: string): number {
    if (char === end) this.#frames.pop()
    else this.#put(char)
    return 1
  }

  /** A backslash, a backquote, or a `$` and what it begins. */
  #special(text: string, at: number): number {
    const char = text[at]
    const next = text[at + 1]
    if (char === '\\') {
      if (next === undefined) this.#isOpenEnded = true
      else if (next !== '\n') this.#put(next)
      return 2
    }
    this.#put(EXPANSION)
    if (char === '`') {
      this.#frames.push({ kind: 'backquote' })
      return 1
    }
    if (next === undefined) this.#isOpenEnded = true
    if (next === '[') this.#isLost = true
    if (next === '{') {
      const isQuoted = this.#frames.some(
        (frame, i) => frame.kind === 'double' && i > this.#frames.lastIndexOf(this.#innermost),
      )
      this.#frames.push({ kind: 'braces', isQuoted, text: '' })
      return 2
    }
    if (next !== '(') return 1
    if (text[at + 2] === '(') {
      this.#frames.push({ kind: 'math', depth: 0, hasShift: false })
      return 3
    }
    this.#frames.push({ kind: 'commands', command: this.#begin(false), isSubstitution: true })
    return 2
  }

  #inBraces(frame: Extract<Frame, { kind: 'braces' }>, text: string, at: number): number {
    const char = text[at] as string
    if (char === '}') {
      this.#evaluatesAll ||= INDIRECT.test(frame.text)
      this.#frames.pop()
      return 1
    }
    frame.text += char
    if (char === '\\' || char === '`') return this.#special(text, at)
    // `${#x}` and `${$}`: the first character is a name.
    if (char === '$' && frame.text.length > 1) return this.#special(text, at)
    // Which of the quotes in "${x:-"…"}" belong together is not the same in all shells.
    if (char === '"' || (char === "'" && !(frame.isQuoted && DEFAULT.test(frame.text)))) {
      if (frame.isQuoted) this.#isLost = true
      else this.#frames.push({ kind: char === '"' ? 'double' : 'single' })
    }
    return 1
  }

  #inMath(frame: Extract<Frame, { kind: 'math' }>, text: string, at: number): number {
    const char = text[at] as string
    if (char === '$' && /[({]/.test(text[at + 1] ?? '')) return this.#special(text, at)
    if (char === '$' && text[at + 1] === undefined) this.#isOpenEnded = true
    // If it is two commands in brackets after all, these mean something else.
    if (/["'`\\]/.test(char) || (char === '#' && /\s/.test(text[at - 1] ?? ' '))) this.#isLost = true
    if (char === '\n' && frame.hasShift) this.#isLost = true
    frame.hasShift ||= char === '<' && text[at + 1] === '<'
    if (char === '(') frame.depth++
    if (char !== ')') return 1
    if (frame.depth-- > 0) return 1
    this.#frames.pop()
    if (text[at + 1] !== ')') this.#isLost = true
    return 2
  }

  #inList(frame: Extract<Frame, { kind: 'list' }>, text: string, at: number): number {
    const char = text[at] as string
    if (char === '\\' || char === '`' || char === '$') return this.#dollar(text, at)
    if (char === '"' || char === "'") this.#frames.push({ kind: char === '"' ? 'double' : 'single' })
    else if (char === ')') this.#frames.pop()
    else if (/[(<>;|&]/.test(char)) this.#isLost = true
    else if (char === '#' && frame.word === '') this.#isInComment = true
    else frame.word = /\s/.test(char) ? '' : frame.word + char
    return 1
  }

  /** Like `special`, where no quotes are. */
  #dollar(text: string, at: number): number {
    if (text[at] !== '$' || text[at + 1] !== "'") return this.#special(text, at)
    this.#frames.push({ kind: 'ansi' })
    return 2
  }

  #inCommands(frame: Commands, text: string, at: number): number {
    const char = text[at] as string
    const next = text[at + 1]
    const { command } = frame
    // Which of these belong to it, a shell finds out as it goes.
    if (command.isInSubscript && /[\s'"\\`;|&()<>[]/.test(char)) this.#isLost = true
    switch (char) {
      case '\\':
      case '`':
      case '$':
        return this.#dollar(text, at)
      case "'":
      case '"':
        command.add('')
        this.#frames.push({ kind: char === '"' ? 'double' : 'single' })
        return 1
      case ' ':
      case '\t':
        this.#endWord(frame)
        return 1
      case '#':
        if (command.open === null) this.#isInComment = true
        else command.add(char)
        return 1
      case '\n':
        this.#endLine(frame)
        return 1
      case '(':
        return this.#openBracket(frame, next)
      case ')':
        return this.#closeBracket(frame)
      case ';':
      case '|':
      case '&':
        if (char === '&' && next === '>') return this.#redirect(command, text, at + 1) + 1
        this.#endWord(frame)
        if (!command.isInTest)
          frame.command = this.#begin(char === '|' && text[at - 1] !== '|' && next !== '|')
        return 1
      case '<':
      case '>':
        return this.#redirect(command, text, at)
      default:
        command.add(char)
        return 1
    }
  }

  #endWord(frame: Commands): void {
    frame.command.endWord()
    const { name, words } = frame.command
    if (name === 'function' && words.at(-1) === '{') frame.command = this.#begin(false)
    // In a `case`, a bracket closes that was not opened.
    if (name === 'case' && this.#frames.length > 1) this.#isLost = true
  }

  #endLine(frame: Commands): void {
    this.#endWord(frame)
    if (!frame.command.isInTest) frame.command = this.#begin(false)
    if (this.#documents.some(({ owner }) => owner !== this.#substitution)) this.#isLost = true
    this.#isInDocument = this.#documents.length > 0
  }

  #openBracket(frame: Commands, next: string | undefined): number {
    const { command } = frame
    if (command.isInTest) {
      command.endWord()
      return 1
    }
    if (command.isAtList) {
      this.#frames.push({ kind: 'list', word: '' })
      return 1
    }
    if (command.open !== null) {
      // A function; other brackets in words mean something in some shells only.
      if (next !== ')' || command.words.length > 0) this.#isLost = true
      command.open = null
      frame.command = this.#begin(false)
      return 2
    }
    frame.command = this.#begin(false)
    if (next === '(') {
      this.#frames.push({ kind: 'math', depth: 0, hasShift: false })
      return 2
    }
    this.#frames.push({ kind: 'commands', command: this.#begin(command.isPiped), isSubstitution: false })
    return 1
  }

  #closeBracket(frame: Commands): number {
    this.#endWord(frame)
    if (frame.command.isInTest) return 1
    frame.command = this.#begin(false)
    if (this.#frames.length === 1) return 1
    this.#frames.pop()
    if (frame.isSubstitution && this.#documents.some(({ owner }) => owner === frame)) this.#isLost = true
    return 1
  }

  /** A redirection, or `<(…)`. Returns how many characters it took. */
  #redirect(command: SimpleCommand, text: string, at: number): number {
    if (text[at + 1] === '(') {
      this.#runsFile ||= isInterpreter(command.words[0] ?? '')
      command.add(EXPANSION)
      this.#frames.push({ kind: 'commands', command: this.#begin(false), isSubstitution: true })
      return 2
    }
    // The number of a descriptor is no word.
    if (/^\d*$/.test(command.open ?? '')) command.open = null
    command.endWord()
    if (command.isInTest) return 1
    const operator = /^(?:<<<|<<|>>|>&|<&|>\||<>|<|>)/.exec(text.slice(at, at + 3))?.[0] ?? text[at]!
    if (operator === '<<') return this.#openDocument(command, text, at)
    command.redirection = operator
    return operator.length
  }

  #openDocument(command: SimpleCommand, text: string, at: number): number {
    const begun = HereDocument.begin(text, at)
    // Its end is not known, and so nothing that follows is.
    if (!begun) this.#isLost = true
    else this.#documents.push({ document: begun.document, owner: this.#substitution, spot: command.spot })
    return begun ? begun.next - at : 2
  }
}
