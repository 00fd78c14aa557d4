/* Descriptors that go to another process through a socket (SCM_RIGHTS).
 *
 * On their way no process holds them, and the sender may close its own meanwhile: a file that is written is not complete
 * before the receiver has closed it, too. So the description keeps a reference (`passed`) until a descriptor of its file
 * arrives somewhere. If it never does, the file is complete when its writers have ended: late, never early. */
#include "local.h"

#include <sys/socket.h>

static void each_right(const struct msghdr *m, void (*what)(long fd))
{
    if (!mr_readable(m, sizeof *m) || !m->msg_control || m->msg_controllen < sizeof(struct cmsghdr)) return;
    const char *at = m->msg_control;
    u64 left = m->msg_controllen;
    if (!mr_readable(at, left)) return;
    while (left >= sizeof(struct cmsghdr)) {
        const struct cmsghdr *h = (const void *)at;
        u64 size = (h->cmsg_len + 7) & ~(u64)7;
        if (h->cmsg_len < sizeof *h || h->cmsg_len > left) return;
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
            for (u64 i = sizeof *h; i + sizeof(int) <= h->cmsg_len; i += sizeof(int)) what(*(const int *)(const void *)(at + i));
        if (size >= left) return;
        at += size;
        left -= size;
    }
}

static void count_passed(long fd, u32 by)
{
    struct mr_guard g;
    u64 e = mr_entry_now(fd);
    if (!e) return;
    __atomic_fetch_or(&mr_fd[fd], MR_SHARED, __ATOMIC_SEQ_CST); /* the position is */
    mr_touched[fd] = 1;
    if (mr_entry_kind(e) != MR_WRITER) return;
    mr_lock(&g);
    struct mr_ofd *o = mr_ofd_at(mr_entry_index(e));
    o->refs += by;
    o->passed += by;
    mr_unlock(&g);
}

static void leaves(long fd) { count_passed(fd, 1); }
static void stays(long fd) { count_passed(fd, (u32)-1); }

long mr_do_sendmsg(const struct mr_call *c)
{
    if (mr_who(0).foreign) return mr_plain(c);
    each_right((const struct msghdr *)c->a[1], leaves);
    long ret = mr_plain(c);
    if (ret < 0) each_right((const struct msghdr *)c->a[1], stays);
    return ret;
}

static u32 headers(const struct mr_call *c)
{
    u32 n = (u32)c->a[2] > 1024 ? 1024 : (u32)c->a[2];
    return mr_readable((const void *)c->a[1], n * sizeof(struct mmsghdr)) ? n : 0;
}

long mr_do_sendmmsg(const struct mr_call *c)
{
    const struct mmsghdr *m = (const struct mmsghdr *)c->a[1];
    if (mr_who(0).foreign) return mr_plain(c);
    u32 n = headers(c);
    for (u32 i = 0; i < n; i++) each_right(&m[i].msg_hdr, leaves);
    long ret = mr_plain(c);
    for (u32 i = ret < 0 ? 0 : (u32)ret; i < n; i++) each_right(&m[i].msg_hdr, stays);
    return ret;
}

long mr_do_recvmsg(const struct mr_call *c)
{
    long ret = mr_plain(c);
    if (ret >= 0 && !mr_who(0).foreign) each_right((const struct msghdr *)c->a[1], mr_arrived);
    return ret;
}

long mr_do_recvmmsg(const struct mr_call *c)
{
    const struct mmsghdr *m = (const struct mmsghdr *)c->a[1];
    long ret = mr_plain(c);
    for (long i = 0; i < ret && !mr_who(0).foreign; i++) each_right(&m[i].msg_hdr, mr_arrived);
    return ret;
}
