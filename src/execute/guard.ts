import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'

/**
 * Cleans up when the coordinator is killed and cannot do it itself: a tiny shell that waits for the end of
 * its input. Processes of the run are known by a variable in their environment, so that also those are
 * found that were started a moment ago or left their process group; folders are announced before they exist.
 */
const SCRIPT = `
folders=
while IFS= read -r line; do
  case $line in
    end) exit 0 ;;
    *) folders="$folders$line
" ;;
  esac
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
printf '%s' "$folders" | while IFS= read -r folder; do rm -rf -- "$folder"; done
`

export class Guard {
  readonly #run: string
  #child: ChildProcess | null = null

  /** `run` must be unique on this machine: processes that carry it are killed. */
  constructor(run: string) {
    this.#run = run
  }

  /** To be called before the first process of the run starts. */
  start(): void {
    if (this.#child || process.platform !== 'linux') return
    const environment = { ...process.env }
    delete environment['MILLRACE_RUN']
    this.#child = spawn('/bin/sh', ['-c', SCRIPT, this.#run], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: environment,
      cwd: '/',
    })
    this.#child.on('error', () => (this.#child = null))
    this.#child.stdin?.on('error', () => undefined)
    this.#child.unref()
    ;(this.#child.stdin as unknown as { unref?(): void } | null)?.unref?.()
  }

  /** To be called before the folder exists. */
  folder(path: string): void {
    this.start()
    if (!path.includes('\n')) this.#child?.stdin?.write(`${path}\n`)
  }

  /** All is clean; there is nothing left to guard. */
  end(): void {
    this.#child?.stdin?.end('end\n')
    this.#child = null
  }
}
