/* Programs that cannot be intercepted: the library is loaded by the dynamic linker of glibc, and sees the calls that a
 * program makes through libc. */
#include "board.h"

#include <elf.h>
#include <sys/stat.h>

static const char *of_notes(long fd, const Elf64_Phdr *p)
{
    union {
        Elf64_Nhdr n;
        char c[256];
    } u;
    if (mr_sys(SYS_pread64, fd, &u, sizeof u, p->p_offset) < (long)(sizeof u.n + 4)) return 0;
    return u.n.n_type == 4 && u.n.n_namesz == 4 && mr_same(u.c + sizeof u.n, "Go", 3) ? "written in Go, which makes its system calls itself" : 0;
}

static const char *of_elf(long fd, const Elf64_Ehdr *e)
{
    int dynamic = 0;
    const char *why = 0;
    if (e->e_ident[EI_CLASS] != ELFCLASS64) return "a 32-bit program";
    for (u32 i = 0; i < e->e_phnum && i < 64 && !why; i++) {
        Elf64_Phdr p;
        char linker[64] = {0};
        if (mr_sys(SYS_pread64, fd, &p, sizeof p, e->e_phoff + (u64)i * e->e_phentsize) != (long)sizeof p) break;
        if (p.p_type == PT_NOTE) why = of_notes(fd, &p);
        if (p.p_type != PT_INTERP) continue;
        dynamic = 1;
        if (mr_sys(SYS_pread64, fd, linker, p.p_filesz < sizeof linker ? p.p_filesz : sizeof linker - 1, p.p_offset) < 0) break;
        for (const char *s = linker; *s; s++)
            if (mr_same(s, "musl", 4)) why = "made for musl, another C library";
    }
    return why ? why : dynamic ? 0 : "statically linked";
}

static const char *look_into(long fd, u32 uid, u32 gid, int depth)
{
    struct stat st;
    union {
        Elf64_Ehdr e;
        char c[256];
    } head;
    if (mr_sys(SYS_fstat, fd, &st, 0, 0) < 0 || !S_ISREG(st.st_mode)) return 0;
    if (((st.st_mode & S_ISUID) && st.st_uid != uid) || ((st.st_mode & S_ISGID) && st.st_gid != gid)) return "set-uid";
    long n = mr_sys(SYS_pread64, fd, &head, sizeof head - 1, 0);
    if (n >= (long)sizeof head.e && mr_same(head.c, ELFMAG, SELFMAG)) return of_elf(fd, &head.e);
    if (n < 3 || head.c[0] != '#' || head.c[1] != '!') return 0;
    head.c[n] = 0;
    char *from = head.c + 2, *to;
    while (*from == ' ' || *from == '\t') from++;
    for (to = from; *to && *to != ' ' && *to != '\t' && *to != '\n';) to++;
    *to = 0;
    return mr_not_intercepted(AT_FDCWD, from, uid, gid, depth + 1);
}

/* Why the library would not see what the program does, or null. Scripts are what runs them. */
const char *mr_not_intercepted(long dirfd, const char *path, u32 uid, u32 gid, int depth)
{
    if (depth > 4) return 0;
    long fd = mr_sys(SYS_openat, dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) return 0; /* executable but not readable: nothing can be said */
    const char *why = look_into(fd, uid, gid, depth);
    mr_sys(SYS_close, fd, 0, 0, 0);
    return why;
}

/* Once for each program of a step, however often it is started. Under the lock. */
void mr_report_unseen(u32 step, u32 pid, const char *path, const char *why)
{
    char text[216];
    struct mr_text t = {text, text + sizeof text};
    mr_put(&t, path);
    mr_put(&t, " is ");
    mr_put(&t, why);
    u32 len = (u32)(t.at - text);
    for (u32 i = 0; i < MR_EVENT_COUNT && i < mr_b->event_seq; i++) {
        const struct mr_event *e = mr_event_at(i);
        if (e->kind == MR_EV_UNSEEN && e->step == step && mr_same(e->text, text, len)) return;
    }
    mr_event(MR_EV_UNSEEN, 0, step, pid, text);
}
