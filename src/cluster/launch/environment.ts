/** Variables that say something of one machine or one login, and nothing of the program. */
const OF_THE_MACHINE =
  /^(?:HOME|USER|LOGNAME|SHELL|MAIL|PWD|OLDPWD|SHLVL|_|TERM|TMPDIR|HOSTNAME|DISPLAY|(?:SSH|XDG|DBUS|SLURM|SYSTEMD)_.*|MILLRACE_(?:RUN|NODES|SSH_OPTIONS))$/

/** What tasks on a machine that was reached by a login of its own have to find in their environment, as they would here. */
export function environmentToSend(environment: NodeJS.ProcessEnv): Record<string, string> {
  const sent: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment))
    if (value !== undefined && !OF_THE_MACHINE.test(name)) sent[name] = value
  return sent
}
