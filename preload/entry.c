/* What happens when the library is loaded. Not linked into the tests of the logic. */
#include "patch.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#define VERSION "1"

__attribute__((visibility("default"))) const char millrace_preload_version[] = VERSION;

struct env {
    const char *dir, *workflow, *app, *off, *limit, *gather, *cache, *verbose, *links, *must;
};

static const char *value(const char *entry, const char *name)
{
    while (*name && *entry == *name) entry++, name++;
    return !*name && *entry == '=' ? entry + 1 : 0;
}

static void read_env(char **envp, struct env *e)
{
    const char *v;
    for (; envp && *envp; envp++) {
        const char *s = *envp;
        if (s[0] == 'C' && s[1] == 'A') {
            if ((v = value(s, "CAPIO_DIR")) && *v) e->dir = e->dir ? e->dir : v;
            if ((v = value(s, "CAPIO_WORKFLOW_NAME")) && *v) e->workflow = v;
            if ((v = value(s, "CAPIO_APP_NAME")) && *v) e->app = v;
        } else if (s[0] == 'M' && s[1] == 'I') {
            if ((v = value(s, "MILLRACE_STREAM_DIR")) && *v) e->dir = v;
            if ((v = value(s, "MILLRACE_STREAM_OFF"))) e->off = v;
            if ((v = value(s, "MILLRACE_STREAM_TIMEOUT"))) e->limit = v;
            if ((v = value(s, "MILLRACE_STREAM_GATHER")) && *v) e->gather = v;
            if ((v = value(s, "MILLRACE_STREAM_CACHE")) && *v) e->cache = v;
            if ((v = value(s, "MILLRACE_STREAM_LINKS"))) e->links = v;
            if ((v = value(s, "MILLRACE_STREAM_MUST"))) e->must = v;
            if ((v = value(s, "MILLRACE_STREAM_VERBOSE"))) e->verbose = v;
        }
    }
}

static void complain(const char *a, const char *b, const char *c)
{
    char text[512];
    struct mr_text t = {text, text + sizeof text};
    mr_put(&t, "millrace: ");
    mr_put(&t, a);
    mr_put(&t, b);
    mr_put(&t, c);
    mr_put(&t, "\n");
    mr_sys(SYS_write, 2, text, t.at - text, 0);
}

/* What Millrace itself has started must not run as if there were no rules: its results would look right and be wrong. */
static void give_up(const struct env *e)
{
    if (e->must && *e->must == '1') mr_sys(SYS_exit_group, 125, 0, 0, 0);
}

/* ---- libc ---- */

static int is_libc(const char *name)
{
    const char *base = name;
    for (; *name; name++)
        if (*name == '/') base = name + 1;
    return mr_same(base, "libc.so", 7) || mr_same(base, "libc-2.", 7) || mr_same(base, "libpthread", 10);
}

struct found {
    u32 count;
    char beside[1024]; /* the folder of this library */
    struct {
        u64 base;
        struct mr_sites s;
    } lib[2];
};
static struct found found;

static void note_folder(const struct dl_phdr_info *info, struct found *f)
{
    struct mr_text t = {f->beside, f->beside + sizeof f->beside};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (u64)millrace_preload_version - info->dlpi_addr - p->p_vaddr < p->p_memsz) mr_put(&t, info->dlpi_name);
    }
    while (t.at > f->beside && *t.at != '/') *t.at-- = 0;
    if (t.at > f->beside) *t.at = 0;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct found *f = data;
    (void)size;
    if (info->dlpi_name && !*f->beside) note_folder(info, f);
    if (!info->dlpi_name || !is_libc(info->dlpi_name) || f->count == 2) return 0;
    struct mr_sites *s = &f->lib[f->count].s;
    u64 base = info->dlpi_addr;
    s->text_to = 0;
    s->id_len = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && !s->text_to) {
            s->text_from = p->p_vaddr;
            s->text_to = p->p_vaddr + p->p_filesz;
        }
        if (p->p_type != PT_NOTE) continue;
        for (u64 at = base + p->p_vaddr, end = at + p->p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
            const ElfW(Nhdr) *n = (const void *)at;
            const char *name = (const char *)(n + 1);
            if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && mr_same(name, "GNU", 4) && n->n_descsz <= 20) {
                s->id_len = n->n_descsz;
                mr_copy(s->id, name + 4, n->n_descsz);
            }
            at += sizeof *n + ((n->n_namesz + 3) & ~3u) + ((n->n_descsz + 3) & ~3u);
        }
    }
    if (s->text_to) f->lib[f->count++].base = base;
    return 0;
}

#if defined(__x86_64__)
/* The functions that nearly every program calls must each contain a site: a libc that goes to the kernel in some
 * other way must not be half intercepted. Functions that another library replaced are not in libc's text. */
static int complete(void)
{
    const struct {
        u64 at;
        u32 nr;
    } needed[] = {{(u64)read, SYS_read}, {(u64)write, SYS_write}, {(u64)open64, SYS_openat}, {(u64)openat64, SYS_openat},
        {(u64)close, SYS_close}, {(u64)pread64, SYS_pread64}, {(u64)pwrite64, SYS_pwrite64}, {(u64)execve, SYS_execve}};
    for (u32 k = 0; k < sizeof needed / sizeof *needed; k++) {
        int here = 0, have = 0;
        for (u32 l = 0; l < found.count; l++) {
            u64 base = found.lib[l].base;
            const struct mr_sites *s = &found.lib[l].s;
            if (needed[k].at < base + s->text_from || needed[k].at >= base + s->text_to) continue;
            here = 1;
            for (u32 i = 0; i < s->count; i++)
                have |= s->site[i].nr == needed[k].nr && base + s->site[i].off - needed[k].at < 384;
            if (!have) have = mr_cancels((const u8 *)base + s->text_from, s->text_to - s->text_from, (const u8 *)needed[k].at, s->text_from, s);
        }
        if (here && !have) return 0;
    }
    return found.count > 0;
}
#endif

static int patch_all(const struct env *e)
{
#if defined(__x86_64__)
    u32 sites = 0, cached = 0;
    dl_iterate_phdr(look_at_object, &found);
    for (u32 i = 0; i < found.count; i++) {
        const char *const folder[2] = {e->cache ? e->cache : found.beside, e->cache ? 0 : "/dev/shm"};
        cached += (u32)mr_sites_of(found.lib[i].base, &found.lib[i].s, folder, mr_self.uid);
        sites += found.lib[i].s.count;
    }
    if (!complete()) {
        complain("this libc is built in a way the library does not know; ", "nothing is intercepted", "");
        return 0;
    }
    for (u32 i = 0; i < found.count; i++)
        if (found.lib[i].s.count && mr_patch(found.lib[i].base, &found.lib[i].s) < 0) {
            complain("cannot patch libc; nothing is intercepted", "", "");
            return 0;
        }
    if (e->verbose && *e->verbose == '1') {
        char n[24];
        struct mr_text t = {n, n + sizeof n};
        mr_put_n(&t, sites);
        complain(n, " sites patched, ", cached ? "offsets from the cache" : "libc scanned");
    }
    return 1;
#else
    (void)e;
    complain("programs are intercepted on x86-64 only; nothing is done", "", "");
    return 0;
#endif
}

/* Is there a site where handlers are set? */
static int sees_handlers(void)
{
    for (u32 l = 0; l < found.count; l++)
        for (u32 i = 0; i < found.lib[l].s.count; i++)
            if (found.lib[l].s.site[i].nr == SYS_rt_sigaction) return 1;
    return 0;
}

/* ---- start ---- */

static int set_directory(const char *dir)
{
    struct mr_self *s = &mr_self;
    s->dir_len = mr_b->dir_len;
    if (s->dir_len >= sizeof s->dir) return 0;
    mr_copy(s->dir, mr_text_at(mr_b->dir), s->dir_len + 1);
    if (s->dir_len >= 8) mr_fence = (struct mr_fence){s->dir_len, mr_word(s->dir), mr_word(s->dir + s->dir_len - 8)};
    mr_cwd_changed();
    u32 len = mr_normal(s->cwd, dir, s->alias, sizeof s->alias - 1);
    if (!len || (len == s->dir_len && mr_same(s->alias, s->dir, len))) return 1;
    /* spelled in another way: is it the same directory? */
    char link[40], real[1024];
    struct mr_text t = {link, link + sizeof link};
    long fd = mr_sys(SYS_openat, AT_FDCWD, s->alias, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    mr_put(&t, "/proc/self/fd/");
    mr_put_n(&t, (u64)fd);
    long n = mr_sys(SYS_readlinkat, AT_FDCWD, link, real, sizeof real - 1);
    mr_sys(SYS_close, fd, 0, 0, 0);
    if (n != (long)s->dir_len || !mr_same(real, s->dir, s->dir_len)) return 0;
    s->alias_len = len;
    mr_fence.len = ~(u64)0;
    mr_cwd_changed();
    return 1;
}

__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
    struct env e = {0};
    char shm[160];
    (void)argc;
    read_env(envp, &e);
    if (!e.dir || (e.off && *e.off == '1')) return;
    struct mr_self *s = &mr_self;
    if (!e.workflow) e.workflow = "CAPIO";
    s->uid = (u32)mr_sys(SYS_getuid, 0, 0, 0, 0);
    s->gid = (u32)mr_sys(SYS_getgid, 0, 0, 0, 0);
    s->pid = (u32)mr_sys(SYS_getpid, 0, 0, 0, 0);
    s->step = s->proc = MR_NONE;
    mr_board_name(shm, sizeof shm, s->uid, e.workflow);
    if (mr_board_open(shm, s->uid) < 0) {
        complain("no board of workflow ", e.workflow, "; nothing is intercepted (start it with `millrace stream up`)");
        return;
    }
    if (!set_directory(e.dir)) {
        complain(e.dir, " is not the managed directory of workflow ", e.workflow);
        give_up(&e);
        return;
    }
    if (e.app) {
        s->step = mr_step_find(e.app);
        if (s->step == MR_NONE) complain("the workflow has no step named ", e.app, "; it only consumes");
    }
    if (e.limit) mr_wait_limit = mr_number(e.limit) * 1000000000u;
    if (e.gather) mr_stage_after = mr_number(e.gather) > 255 ? 255 : (u32)mr_number(e.gather);
    if (e.links && *e.links == '1') __atomic_fetch_or(&mr_b->links, MR_OUTER_LINKS, __ATOMIC_SEQ_CST);
    else if (!(mr_b->links & MR_OUTER_LINKS) && !e.links && argv) mr_notice_links(argv);
    if (!patch_all(&e)) {
        give_up(&e);
        return;
    }
    u64 born = 0;
    u32 parent = 0, threads = 1;
    struct mr_guard g;
    mr_task_state(s->pid, &born, &parent, &threads);
    s->threads = threads > 1;
    mr_only_thread = s->threads ? 0 : s->pid;
    mr_no_handlers = sees_handlers() && !mr_has_handlers();
    mr_lock(&g);
    s->proc = mr_proc_join(s->pid, born, s->step, parent);
    mr_unlock(&g);
    mr_keep_environment(envp);
    mr_learn_fds();
    mr_in_steps = 1;
    s->on = 1;
}
