/* Links outside of the managed directory that lead into it.
 *
 * Nearly always there are none, and looking for links on the way of every path costs more than most calls. So it is done
 * once one is known: steps that make one say so, and so do programs that were given such a path (MR_OUTER_LINKS).
 * From then on the kernel is asked where a path leads, in all programs of the workflow. */
#include "local.h"

#define WORDS 32

/* The directory that a path names its last part in, opened; and where that part begins. */
static long open_above(long dirfd, const char *path, u32 *from, u32 *len)
{
    char above[2200];
    u32 end = (u32)mr_len(path);
    while (end && path[end - 1] == '/') end--;
    for (*from = end; *from && path[*from - 1] != '/';) --*from;
    *len = end - *from;
    if (*from >= sizeof above || !*len) return -1;
    if (*len < 3 && path[*from] == '.' && path[end - 1] == '.') *from = end, *len = 0; /* all of it is a directory */
    mr_copy(above, *from ? path : ".", *from ? *from : 1);
    above[*from ? *from : 1] = 0;
    return mr_sys(SYS_openat, dirfd, above, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/* Where a path leads. last: its last name may be a link, too. */
int mr_lead(long dirfd, const char *path, int last, struct mr_name *n)
{
    char full[2200], next[2200], name[256]; /* threads may have little stack */
    for (int depth = 0; depth < 8; depth++) {
        u32 from, len;
        long dir = open_above(dirfd, path, &from, &len);
        if (dir < 0) return MR_OUTSIDE;
        long above = mr_link_of(dir, full, sizeof full);
        long linked = -1;
        if (len < sizeof name) mr_copy(name, path + from, len), name[len] = 0;
        if (last && len && len < sizeof name) linked = mr_sys(SYS_readlinkat, dir, name, next, sizeof next - 1);
        mr_sys(SYS_close, dir, 0, 0, 0);
        if (above <= 0 || len >= sizeof name || (u64)above + len + 2 > sizeof full) return MR_OUTSIDE;
        struct mr_text t = {full + above, full + sizeof full};
        if (len && above > 1) mr_put(&t, "/");
        if (len) mr_put(&t, name);
        int where = mr_name_at(full, n);
        if (where == MR_INSIDE || linked <= 0) return where;
        next[linked] = 0;
        if (next[0] != '/') { /* from where the link lies */
            if ((u64)above + 1 + (u64)linked >= sizeof full) return MR_OUTSIDE;
            t = (struct mr_text){full + above, full + sizeof full};
            mr_put(&t, "/");
            mr_put(&t, next);
            mr_copy(next, full, (u64)above + 2 + (u64)linked);
        }
        path = next; /* the next round has taken from it what it needs before it reads a link again */
        dirfd = AT_FDCWD;
    }
    return MR_OUTSIDE;
}

int mr_name_followed(long dirfd, const char *path, struct mr_name *n)
{
    int where = mr_name_of(dirfd, path, n);
    if (unlikely(where == MR_OUTSIDE && (mr_peek(&mr_b->links) & MR_OUTER_LINKS)) && mr_text_readable(path) && *path) where = mr_lead(dirfd, path, 1, n);
    return where;
}

static void known(void) { __atomic_fetch_or(&mr_b->links, MR_OUTER_LINKS, __ATOMIC_SEQ_CST); }

/* A link was made outside. */
void mr_outer_link(long dirfd, const char *path)
{
    struct mr_name n;
    if (mr_lead(dirfd, path, 1, &n) != MR_OUTSIDE) known();
}

/* The words that a program was started with: a path that goes through a link into the managed directory is likely to be
 * among them, also in a line for the shell. */
void mr_notice_links(char **argv)
{
    char word[1024];
    struct mr_name n;
    u32 left = WORDS;
    for (argv += *argv != 0; *argv && left; argv++)
        for (const char *p = *argv; *p && left;) {
            u32 len = 0;
            int slash = 0;
            for (; *p && !(*p <= ' ' || *p == '\'' || *p == '"' || *p == ';' || *p == '&' || *p == '|' || *p == '<' || *p == '>' || *p == '(' || *p == ')' || *p == '=' || *p == ','); p++) {
                slash |= *p == '/';
                if (len < sizeof word - 1) word[len++] = *p;
            }
            word[len] = 0;
            if (*p) p++;
            if (!len || word[0] == '-' || len == sizeof word - 1) continue;
            left--;
            char target[8];
            if (!slash && mr_sys(SYS_readlinkat, AT_FDCWD, word, target, sizeof target) <= 0) continue;
            if (mr_name_of(AT_FDCWD, word, &n) == MR_OUTSIDE && mr_lead(AT_FDCWD, word, 1, &n) == MR_INSIDE) return known();
        }
}
