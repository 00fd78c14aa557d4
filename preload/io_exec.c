/* exec. A program that the library would not see, or that would start without it, is dealt with before it starts. */
#include "local.h"

/* ---- the environment ---- */

#define MOST_KEPT 12
#define MOST_ENTRIES 500

static char kept_text[6144];
static const char *kept[MOST_KEPT];
static u32 kept_count;

static int begins(const char *s, const char *with)
{
    while (*with && *s == *with) s++, with++;
    return !*with;
}

static int is_ours(const char *s)
{
    return (s[0] == 'C' && (begins(s, "CAPIO_DIR=") || begins(s, "CAPIO_WORKFLOW_NAME=") || begins(s, "CAPIO_APP_NAME="))) ||
           (s[0] == 'M' && begins(s, "MILLRACE_STREAM_")) || (s[0] == 'L' && begins(s, "LD_PRELOAD="));
}

/* What this program was started with; its own copy may change. */
void mr_keep_environment(char **envp)
{
    struct mr_text t = {kept_text, kept_text + sizeof kept_text};
    for (; *envp && kept_count < MOST_KEPT; envp++) {
        if (!is_ours(*envp)) continue;
        if (t.at + mr_len(*envp) + 2 > kept_text + sizeof kept_text) {
            kept_count = 0; /* rather nothing than a part of it */
            return;
        }
        kept[kept_count++] = t.at;
        mr_put(&t, *envp);
        t.at++;
    }
}

/* `env -i`, subprocess.run(env={}): nothing is left. A program for which LD_PRELOAD is set to something else, also to
 * nothing, is meant to run without the library. */
static int is_cleared(char **envp)
{
    for (u32 i = 0; envp && envp[i]; i++) {
        if (i == MOST_ENTRIES || !mr_readable(envp + i, 16) || !mr_text_readable(envp[i])) return 0;
        if (is_ours(envp[i])) return 0;
    }
    return kept_count > 0;
}

static __attribute__((noinline)) long exec_restored(const struct mr_call *c, int at)
{
    const char *with[MOST_ENTRIES + MOST_KEPT + 1];
    u32 n = 0;
    struct mr_call d = *c;
    for (char **e = (char **)c->a[at]; e && *e;) with[n++] = *e++;
    for (u32 i = 0; i < kept_count; i++) with[n++] = kept[i];
    with[n] = 0;
    d.a[at] = (long)with;
    return mr_plain(&d);
}

/* ---- programs that are not intercepted ---- */

/* What it names and reads must be complete before it starts: it will not wait. */
static void wait_for_argument(u32 proc, const char *text)
{
    struct mr_name n;
    struct mr_rights r;
    if (!mr_text_readable(text) || mr_name_followed(AT_FDCWD, text, &n) != MR_INSIDE) return;
    mr_rights_of(&n, &r);
    if (r.rule == MR_NONE && (mr_b->links & MR_LINKS)) mr_follow_links(AT_FDCWD, text, &n, &r);
    if (r.rule == MR_NONE || r.producer || mr_record(&n, &r) == MR_NONE) return;
    mr_wait_if_it_ends(proc, r.file, r.is_dir ? MR_WAIT_LIST : MR_WAIT_COMMIT);
}

static __attribute__((noinline)) void prepare_unseen(u32 proc, const char *path, const char *why, char **argv)
{
    struct mr_guard g;
    mr_lock(&g);
    mr_report_unseen(mr_self.step, mr_self.pid, path, why);
    mr_unlock(&g);
    for (u32 i = 0, n = mr_load(&mr_self.fd_top); i < n; i++) {
        long flags = mr_entry_kind(mr_fd[i]) == MR_READER ? mr_sys(SYS_fcntl, i, F_GETFD, 0, 0) : -1;
        if (flags >= 0 && !(flags & FD_CLOEXEC)) mr_wait_if_it_ends(proc, mr_entry_index(mr_fd[i]), MR_WAIT_COMMIT);
    }
    for (u32 i = 1; argv && i < 4096 && mr_readable(argv, 16 + 8 * i) && argv[0] && argv[i]; i++) {
        wait_for_argument(proc, argv[i]);
        for (const char *s = argv[i]; mr_text_readable(s) && *s; s++)
            if (*s == '=') wait_for_argument(proc, s + 1); /* if=data, --input=data */
    }
}

static void mark_exec(u32 proc, int on)
{
    struct mr_guard g;
    if (proc == MR_NONE) return;
    mr_lock(&g);
    struct mr_proc *p = mr_proc_at(proc);
    if (on) p->flags |= MR_EXECING;
    else p->flags &= ~(u32)MR_EXECING;
    mr_unlock(&g);
}

/* args: the number of the argument with argv; envp follows */
static long exec_path(const struct mr_call *c, long dirfd, const char *path, int args)
{
    struct mr_name n;
    struct mr_rights r;
    if (mr_name_followed(dirfd, path, &n) == MR_INSIDE) {
        mr_rights_of(&n, &r);
        if (unlikely(r.rule == MR_NONE && (mr_b->links & MR_LINKS))) mr_follow_links(dirfd, path, &n, &r);
        long err = mr_gate(dirfd, path, &n, &r);
        if (err == 0 && r.rule != MR_NONE && !r.producer && !r.is_dir) /* a program must be whole */
            err = mr_wait_for(mr_who(0).proc, r.file, MR_WAIT_COMMIT, 0, 0);
        if (err < 0) return err;
    }
    struct mr_who who = mr_who(1);
    u32 proc = who.proc;
    if (!who.foreign) mr_stage_end_all();
    const char *why = mr_text_readable(path) ? mr_not_intercepted(dirfd, path, mr_self.uid, mr_self.gid, 0) : 0;
    if (unlikely(why)) prepare_unseen(proc, path, why, (char **)c->a[args]);
    mark_exec(proc, 1);
    long err = is_cleared((char **)c->a[args + 1]) ? exec_restored(c, args + 1) : mr_plain(c);
    mark_exec(proc, 0);
    return err;
}

long mr_do_execve(const struct mr_call *c) { return exec_path(c, AT_FDCWD, (const char *)c->a[0], 1); }
long mr_do_execveat(const struct mr_call *c) { return exec_path(c, c->a[0], (const char *)c->a[1], 2); }
