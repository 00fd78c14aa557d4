/** What the coordinator says to an agent. */
export const TO_AGENT = {
  /** What the run is, before anything else. */
  start: 1,
  /** A compute thread is wanted. */
  open: 2,
  task: 3,
  /** A message to a thread, other than a task. */
  message: 4,
  /** Take a task back unless it has begun. */
  revoke: 5,
  hurry: 6,
  kill: 7,
  /** Memory that is not needed any more. */
  forget: 8,
  /** Words of a stream that changed. */
  words: 9,
  /** Programs. */
  run: 10,
  stopProgram: 11,
  callBack: 12,
  /** The lease is renewed. */
  renewed: 13,
  end: 14,
  /** What does it see? */
  probe: 15,
  /** Something to be done with files of its own folder. */
  file: 16,
  /** A buffer to be got from another node. */
  fetch: 17,
  /** Ranks of MPI tasks, and bytes for one of them. */
  ranks: 18,
  toRank: 19,
  /** A buffer that was made there is wanted here. */
  bring: 20,
  /** What is to be done with growing files, and bytes of them that were taken. */
  streams: 21,
  streamsTaken: 22,
  /** Tell how loaded the machine is, or no longer. */
  measure: 23,
} as const

/** What an agent says to the coordinator. */
export const FROM_AGENT = {
  /** Who it is, before anything else. */
  hello: 64,
  /** It asks for its lease. */
  ask: 65,
  ready: 66,
  result: 67,
  /** A message of a thread, other than a result. */
  said: 68,
  /** A thread has ended. */
  ended: 69,
  revoked: 70,
  began: 71,
  ran: 72,
  refused: 73,
  note: 74,
  started: 75,
  cannotStart: 76,
  probed: 77,
  /** What it would print, where nothing passes that on. */
  printed: 78,
  /** How that went. */
  filed: 79,
  /** Whether a buffer of another node is there. */
  fetched: 80,
  /** Of ranks, and bytes of one of them. */
  ranks: 81,
  fromRank: 82,
  /** Of growing files, and bytes of them that were taken. */
  streams: 83,
  streamsTaken: 84,
  /** How loaded the machine is. */
  measured: 85,
} as const

/** Both ways: the content of a buffer that is small enough to go with the messages. */
export const BLOB = 128

/** Grows whenever frames change: both sides must speak the same. */
export const PROTOCOL = 9
