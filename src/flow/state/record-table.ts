/** What is known of a task that has been done: its command, and the stamps of what it read and made. */
export interface TaskRecord {
  readonly text: number
  readonly outputs: readonly number[]
  readonly outputStamps: readonly number[]
  readonly inputs: readonly number[]
  readonly inputStamps: readonly number[]
}

/** The records of all tasks in columns, found by the first output. Newer records replace older ones. */
export class RecordTable {
  /** By file: the number of its record, from 1; 0 for none. */
  #recordOf = new Int32Array(0)
  #text: Float64Array = new Float64Array(0)
  /** Where the files of a record begin; they go on to where the next one's begin. */
  #start: Int32Array = new Int32Array(1)
  #outputs: Int32Array = new Int32Array(0)
  #files: Int32Array = new Int32Array(0)
  #stamps: Float64Array = new Float64Array(0)
  #count = 0
  #used = 0

  get count(): number {
    return this.#count
  }

  load(columns: {
    text: Float64Array
    start: Int32Array
    outputs: Int32Array
    files: Int32Array
    stamps: Float64Array
  }): void {
    this.#text = columns.text
    this.#start = columns.start
    this.#outputs = columns.outputs
    this.#files = columns.files
    this.#stamps = columns.stamps
    this.#count = columns.text.length
    this.#used = columns.files.length
    let last = 0
    for (const file of columns.files) if (file > last) last = file
    this.#recordOf = new Int32Array(last + 1)
    for (let record = 0; record < this.#count; record++) {
      this.#point(this.#files[this.#start[record] as number] as number, record + 1)
    }
  }

  has(firstOutput: number): boolean {
    return (this.#recordOf[firstOutput] ?? 0) > 0
  }

  remove(firstOutput: number): void {
    if (this.has(firstOutput)) this.#recordOf[firstOutput] = 0
  }

  add(record: TaskRecord): void {
    const first = record.outputs[0] as number
    const length = record.outputs.length + record.inputs.length
    if (this.#count + 2 > this.#start.length) this.#growRecords()
    while (this.#used + length > this.#files.length) this.#growFiles()
    const at = this.#count++
    this.#text[at] = record.text
    this.#outputs[at] = record.outputs.length
    for (let i = 0; i < record.outputs.length; i++) {
      this.#append(record.outputs[i] as number, record.outputStamps[i] as number)
    }
    for (let i = 0; i < record.inputs.length; i++) {
      this.#append(record.inputs[i] as number, record.inputStamps[i] as number)
    }
    this.#start[at + 1] = this.#used
    this.#point(first, at + 1)
  }

  get(firstOutput: number): TaskRecord | null {
    const record = (this.#recordOf[firstOutput] ?? 0) - 1
    if (record < 0) return null
    const [from, middle, to] = this.#bounds(record)
    return {
      text: this.#text[record] as number,
      outputs: Array.from(this.#files.subarray(from, middle)),
      outputStamps: Array.from(this.#stamps.subarray(from, middle)),
      inputs: Array.from(this.#files.subarray(middle, to)),
      inputStamps: Array.from(this.#stamps.subarray(middle, to)),
    }
  }

  /** Records are numbered in the order in which they were made; -1 when there is none. */
  numberOf(firstOutput: number): number {
    return (this.#recordOf[firstOutput] ?? 0) - 1
  }

  firstOutput(record: number): number {
    return record >= 0 && record < this.#count ? (this.#files[this.#start[record] as number] as number) : -1
  }

  /** What it read in this place; -1 when that is not known. */
  inputOf(firstOutput: number, place: number): number {
    const record = (this.#recordOf[firstOutput] ?? 0) - 1
    if (record < 0) return -1
    const at = (this.#start[record] as number) + (this.#outputs[record] as number) + place
    return at < (this.#start[record + 1] as number) ? (this.#files[at] as number) : -1
  }

  /**
   * Whether the task was done with this command, these files and these contents; nothing is allocated, because
   * this is asked for each task of each run. What the files in `remade` will hold is not known yet.
   */
  matches(
    firstOutput: number,
    text: number,
    outputs: readonly number[],
    inputs: readonly number[],
    stamp: Float64Array,
    remade: ReadonlySet<number> | null = null,
  ): boolean {
    const record = (this.#recordOf[firstOutput] ?? 0) - 1
    if (record < 0 || this.#text[record] !== text) return false
    const from = this.#start[record] as number
    const to = this.#start[record + 1] as number
    if (this.#outputs[record] !== outputs.length || to - from !== outputs.length + inputs.length) return false
    let at = from
    for (let i = 0; i < outputs.length; i++, at++) {
      const file = outputs[i] as number
      if (this.#files[at] !== file || this.#stamps[at] !== stamp[file]) return false
    }
    for (let i = 0; i < inputs.length; i++, at++) {
      const file = inputs[i] as number
      if (this.#files[at] !== file) return false
      if (this.#stamps[at] !== (file < 0 ? 0 : stamp[file]) && !remade?.has(file)) return false
    }
    return true
  }

  /** All records that count, in the order in which they were made. */
  *all(): Generator<TaskRecord> {
    for (let record = 0; record < this.#count; record++) {
      const first = this.#files[this.#start[record] as number] as number
      if (this.#recordOf[first] === record + 1) yield this.get(first) as TaskRecord
    }
  }

  #bounds(record: number): [number, number, number] {
    const from = this.#start[record] as number
    return [from, from + (this.#outputs[record] as number), this.#start[record + 1] as number]
  }

  #append(file: number, stamp: number): void {
    this.#files[this.#used] = file
    this.#stamps[this.#used++] = stamp
  }

  #point(file: number, record: number): void {
    if (file >= this.#recordOf.length) {
      const grown = new Int32Array(Math.max(1024, file * 2))
      grown.set(this.#recordOf)
      this.#recordOf = grown
    }
    this.#recordOf[file] = record
  }

  #growRecords(): void {
    const length = Math.max(1024, this.#count * 2)
    const grow = <T extends Int32Array | Float64Array>(old: T, grown: T): T => (grown.set(old), grown)
    this.#text = grow(this.#text, new Float64Array(length))
    this.#start = grow(this.#start, new Int32Array(length + 1))
    this.#outputs = grow(this.#outputs, new Int32Array(length))
  }

  #growFiles(): void {
    const length = Math.max(4096, this.#files.length * 2)
    const files = new Int32Array(length)
    files.set(this.#files)
    this.#files = files
    const stamps = new Float64Array(length)
    stamps.set(this.#stamps)
    this.#stamps = stamps
  }
}
