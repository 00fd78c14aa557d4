import type { ChildProcess } from 'node:child_process'
import { thisProcess } from '../../storage/owner.ts'

/**
 * Cleans up when the coordinator is killed and cannot do it itself: a tiny shell that waits for the end of
 * its input. Processes of the run are known by a variable in their environment, so that also those are
 * found that were started a moment ago or left their process group; folders are announced before they exist.
 */
const SCRIPT = `
folders=
for folder in "$@"; do folders="$folders$folder
"; done
while IFS= read -r line; do
  case $line in
    end) exit 0 ;;
    *) folders="$folders$line
" ;;
  esac
done
# Until all is over, the run counts as alive where it was at work: its programs may still write there.
read -r facts < /proc/$$/stat
set -- \${facts##*) }
printf '%s' "$folders" | while IFS= read -r folder; do
  [ -L "$folder/.run-$0" ] && ln -sfn "$$ \${20} $MILLRACE_HOST" "$folder/.run-$0" 2>/dev/null
done
for try in 1 2 3; do
  found=
  for environment in /proc/[0-9]*/environ; do
    if tr '\\0' '\\n' < "$environment" 2>/dev/null | grep -qx "MILLRACE_RUN=$0"; then
      pid=\${environment#/proc/}; pid=\${pid%/environ}
      [ "$pid" = "$$" ] || { kill -9 "$pid" 2>/dev/null && found=1; }
    fi
  done
  [ -n "$found" ] || break
done
# Other runs may be at work in a staging folder. Places are listed before the runs: see src/storage/staging.ts.
leave() {
  set -- "$1" "$1"/* "$1"/.[!.]*
  for mark in "$1"/.run-*; do
    if [ -L "$mark" ] && [ "$mark" != "$1/.run-$run" ]; then rm -f -- "$1/.run-$run"; return; fi
  done
  folder=$1
  shift
  rm -rf -- "$@"
  rm -f -- "$folder/.run-$run"
  rmdir -- "$folder" 2>/dev/null
}
run=$0
printf '%s' "$folders" | while IFS= read -r folder; do
  case \${folder##*/} in .millrace-new*) leave "$folder"; continue ;; esac
  for try in 1 2 3 4 5 6 7 8; do
    rm -rf -- "$folder"
    [ -e "$folder" ] || break
    sleep 0.1
  done
done
`

/** A watchdog that is killed this often is not started again. */
const MOST_STARTS = 5
const MOST_ARGUMENTS = 100

export class Watchdog {
  readonly #run: string
  #child: ChildProcess | null = null
  #isSuspicious = false
  /** What it was told, for the next one should it be killed. */
  readonly #folders: string[] = []
  #starts = 0

  /** `run` must be unique on this machine: processes that carry it are killed. */
  constructor(run: string) {
    this.#run = run
  }

  /** To be called before the first process of the run starts. */
  start(): void {
    if (this.#child || process.platform !== 'linux' || this.#starts === MOST_STARTS) return
    this.#starts++
    const environment: NodeJS.ProcessEnv = { ...process.env, MILLRACE_HOST: thisProcess().host }
    delete environment['MILLRACE_RUN']
    const { spawn } = process.getBuiltinModule('node:child_process')
    // What the one before it was told goes with it: the coordinator may be killed before it can say anything.
    const known = this.#folders.slice(0, MOST_ARGUMENTS)
    const child = spawn('/bin/sh', ['-c', SCRIPT, this.#run, ...known], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: environment,
      cwd: '/',
    })
    this.#child = child
    child.on('error', () => (this.#child = null))
    child.on('exit', () => {
      if (this.#child !== child) return
      this.#child = null
      this.start()
    })
    child.stdin.on('error', () => undefined)
    child.unref()
    ;(child.stdin as unknown as { unref(): void }).unref()
    for (const path of this.#folders.slice(known.length)) child.stdin.write(`${path}\n`)
  }

  /** To be called before the folder exists. */
  folder(path: string): void {
    this.start()
    if (path.includes('\n')) return
    this.#folders.push(path)
    this.#child?.stdin?.write(`${path}\n`)
  }

  /** A command was stopped: of what it had started, something may have left its process group. */
  suspect(): void {
    this.#isSuspicious = true
  }

  /** All is clean and there is nothing left to watchdog, unless something may have got away. */
  end(): void {
    if (this.#isSuspicious) return this.release()
    this.#child?.stdin?.end('end\n')
    this.#child = null
  }

  /** What is left is the watchdog's to clean, as soon as this process has ended. */
  release(): void {
    this.#child = null
  }
}
