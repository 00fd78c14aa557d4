/** First byte of every encoded value. */
export const TAG = {
  undefined: 0,
  null: 1,
  true: 2,
  false: 3,
  integer: 4,
  negative: 5,
  double: 6,
  string: 7,
  bigint: 8,
  array: 9,
  hole: 10,
  object: 11,
  bareObject: 12,
  map: 13,
  set: 14,
  date: 15,
  regexp: 16,
  error: 17,
  arrayView: 18,
  arrayBeside: 19,
  arrayBuffer: 20,
  bufferBeside: 21,
  instance: 22,
  /** An object that occurred before in this value. */
  seen: 23,
  /** A value that is sent on its own: a future or a tracked object inside an array or object. */
  slot: 24,
  /** An array of zeros, for output parameters whose contents do not matter. */
  zeros: 25,
  /** An array with properties beside its elements, such as the result of a match. */
  namedArray: 26,
  /** The values of a generator task, as they come: the number of the stream, and its memory beside. */
  stream: 27,
  /** In front of a value that a task wrote: which of its objects are those that the program has; see identity.ts. */
  graph: 28,
  /** A view, or the whole, of memory that several objects of the value have in common. */
  regionView: 29,
  regionBuffer: 30,
  /** In the place of a list that a task wrote: how many elements it had, how many were added, and these; see grown-list.ts. */
  more: 31,
} as const

/** Errors are encoded by their place in this list: the encoder and the decoder must agree on it. */
export const ERROR_TYPES = [
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
]
