/* The receiving half of a relay: files whose home is another node, and the ends of steps there. */
#include "tool_relay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM_TRIES 300
#define SIGHT_NS 1000000u

struct content {
    const u8 *at, *end;
};

static u64 number(struct content *c, u32 size)
{
    u64 value = 0;
    if ((u64)(c->end - c->at) < size) return 0;
    memcpy(&value, c->at, size);
    c->at += size;
    return value;
}

/* The record of a path. MR_NONE: no rule names it here, or the board is full. */
static u32 record_of(const char *name)
{
    struct mr_guard g;
    int is_dir;
    u32 length = (u32)strlen(name), file = MR_NONE;
    mr_lock(&g);
    u32 rule = mr_rule_find(name, length, &is_dir);
    if (rule != MR_NONE) file = mr_file_get(name, length, rule, is_dir);
    mr_unlock(&g);
    return file;
}

static int is_inside(const char *name)
{
    if (*name == '/' || !*name) return 0;
    for (const char *p = name; p; p = strchr(p, '/'), p = p ? p + 1 : 0)
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2])) return 0;
    return 1;
}

static void make_parents(char *path)
{
    for (char *p = path + mr_b->dir_len + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0777);
        *p = '/';
    }
}

static void fail(u32 file, const char *why)
{
    struct mr_guard g;
    mr_lock(&g);
    mr_file_fail(file, MR_NONE, why);
    mr_unlock(&g);
}

/* With --live: what came and is not complete. Only one thread takes frames. */
static u32 *begun, begun_count, begun_room;

static void note_begun(u32 file)
{
    u32 left = 0;
    if (begun_count == begun_room) { /* those that are complete by now make room */
        for (u32 i = 0; i < begun_count; i++)
            if (mr_load(&mr_file_at(begun[i])->state) < MR_COMMITTED) begun[left++] = begun[i];
        begun_count = left;
        begun = realloc(begun, (begun_room = left * 2 + 64) * sizeof *begun);
    }
    begun[begun_count++] = file;
}

void mr_fail_begun(void)
{
    for (u32 i = 0; i < begun_count; i++)
        if (mr_load(&mr_file_at(begun[i])->state) < MR_COMMITTED) fail(begun[i], "the node that wrote it was lost");
}

/* ---- frames ---- */

static int begin(u32 file, char *path, u8 flags)
{
    struct mr_guard g;
    struct mr_file *f = mr_file_at(file);
    if ((flags & MR_BEGIN_AGAIN) && (f->marks & MR_REMOTE) && mr_load(&f->state) >= MR_GROWING) return 0; /* the same bytes come again */
    make_parents(path);
    if ((flags & MR_BEGIN_DIR) || f->is_dir) {
        mkdir(path, 0777);
        mr_lock(&g);
        mr_file_begin(file);
        mr_unlock(&g);
        return 0;
    }
    mr_lock(&g);
    int is_ours = f->state >= MR_GROWING || f->writers;
    if (is_ours) mr_dispute(file, MR_NONE);
    else f->marks |= MR_REMOTE; /* the sending half must not take it for a file of this node */
    mr_unlock(&g);
    if (is_ours) return 0;
    if (mr_is_live) note_begun(file);
    if (mr_is_shared) {
        mr_lock(&g);
        mr_file_begin(file);
        mr_unlock(&g);
        return 0;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        fail(file, strerror(errno));
        return 0;
    }
    close(fd);
    mr_lock(&g);
    mr_file_begin(file);
    mr_unlock(&g);
    return 0;
}

static ssize_t write_at(struct mr_file *f, const char *path, const u8 *bytes, u64 size, u64 at)
{
    for (;;) {
        mr_place_wait(f);
        u32 place = mr_load(&f->place);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0) return -errno;
        ssize_t n = pwrite(fd, bytes, size, (off_t)at);
        if (n < 0) n = -errno;
        close(fd);
        if (mr_load(&f->place) == place) return n;
    }
}

/* ---- what this node does not see yet ---- */

/* In a shared directory: a frame that tells of bytes which are not there on this node yet, and those of the same file behind it.
 * Other files do not wait for them; the end of a step comes behind all that was sent before it. */
struct aside {
    struct aside *next;
    u64 since; /* it is waited for; 0: for one of the same file before it */
    u32 file, length;
    u8 type, content[];
};

static struct aside *asides, **asides_end = &asides;

static int has_aside(u32 file)
{
    for (const struct aside *a = asides; a; a = a->next)
        if (a->file == file) return 1;
    return 0;
}

static void put_aside(u32 file, u8 type, const u8 *content, u32 length)
{
    struct aside *last = 0;
    for (struct aside *a = asides; a; a = a->next)
        if (a->file == file) last = a;
    if (last && last->type == MR_FRAME_DATA && type == MR_FRAME_DATA && last->length == length && !last->since) {
        memcpy(last->content, content, length); /* it tells of more */
        return;
    }
    struct aside *a = malloc(sizeof *a + length);
    if (!a) return; /* its reader will wait until the file is complete */
    *a = (struct aside){.file = file, .type = type, .length = length};
    memcpy(a->content, content, length);
    *asides_end = a;
    asides_end = &a->next;
}

enum { NOT_SEEN = -1, SEEN, UNSEEN_TOO_LONG };

/* Whether the file has as many bytes here as another node has told. Opening it makes the file system ask for its size again. */
static int is_seen(u32 file, const char *path, u64 size, u64 since)
{
    char why[200];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    long long found = fd >= 0 && fstat(fd, &st) == 0 ? (long long)st.st_size : -1;
    if (fd >= 0) close(fd);
    if (found >= 0 && (u64)found >= size) return SEEN;
    if (!since || mr_now() - since < mr_sight_limit) return NOT_SEEN;
    if (found < 0) snprintf(why, sizeof why, "MR_STREAM_UNSEEN: another node has written it, and it is not there on this node");
    else snprintf(why, sizeof why, "MR_STREAM_UNSEEN: another node has written %llu bytes, and %lld are there on this node", (unsigned long long)size, found);
    fail(file, why);
    return UNSEEN_TOO_LONG;
}

/* In a shared directory: 0, or NOT_SEEN. */
static int data_seen(u32 file, const char *path, struct content c, u64 since)
{
    struct mr_file *f = mr_file_at(file);
    u64 to = number(&c, 8), from = mr_load(&f->frontier);
    if (f->mode != MR_NO_UPDATE || mr_load(&f->state) != MR_GROWING || to <= from) return 0;
    int seen = is_seen(file, path, to, since);
    if (seen == SEEN) mr_publish(f, from, to);
    return seen == NOT_SEEN ? NOT_SEEN : 0;
}

static int complete_seen(u32 file, const char *path, struct content c, u64 since)
{
    struct mr_guard g;
    u64 size = number(&c, 8);
    if (mr_load(&mr_file_at(file)->state) >= MR_COMMITTED) return 0;
    int seen = size == ~(u64)0 ? SEEN : is_seen(file, path, size, since);
    if (seen != SEEN) return seen == NOT_SEEN ? NOT_SEEN : 0;
    mr_lock(&g);
    mr_file_complete(file);
    mr_unlock(&g);
    return 0;
}

static int data(u32 file, const char *path, struct content c)
{
    struct mr_file *f = mr_file_at(file);
    u64 from = number(&c, 8), at = from, size = (u64)(c.end - c.at);
    for (int tries = 0; size;) {
        ssize_t n = write_at(f, path, c.at, size, at);
        if (n == -ENOSPC && tries++ < ROOM_TRIES) { /* others move to the lower layer, or this one */
            if (mr_file_move(file, -1) < 0 && !mr_relieve(file)) usleep(10000);
            continue;
        }
        if (n < 0) {
            fail(file, n == -ENOSPC ? "there is no room for it on a node that reads it" : strerror((int)-n));
            return 0;
        }
        c.at += n;
        at += (u64)n;
        size -= (u64)n;
    }
    if (f->mode == MR_NO_UPDATE && mr_load(&f->state) == MR_GROWING) mr_publish(f, from, at);
    return 0;
}

static int complete(u32 file, const char *path, struct content c)
{
    struct mr_guard g;
    u64 size = number(&c, 8);
    u32 mode = (u32)number(&c, 4);
    if (size == ~(u64)0) unlink(path);
    else if (truncate(path, (off_t)size) < 0) {
        fail(file, strerror(errno));
        return 0;
    }
    if (mode && chmod(path, mode) < 0) mode = 0; /* it can still be read */
    mr_lock(&g);
    mr_file_complete(file);
    mr_unlock(&g);
    return 0;
}

static int cut(u32 file, const char *path, int is_gone)
{
    struct mr_guard g;
    struct mr_file *f = mr_file_at(file);
    mr_lock(&g);
    if (is_gone) {
        mr_file_reset(file);
        f->marks &= (u16)~MR_REMOTE; /* the name is free for a step of any node */
    } else mr_cut(f, 0);
    mr_unlock(&g);
    if (!is_gone && !mr_is_shared) return truncate(path, 0) < 0 ? mr_say(MR_FAILED_COMMAND, "%s: %s", path, strerror(errno)) : 0;
    if (!is_gone) return 0;
    if (!mr_is_shared) unlink(path);
    mr_look_at_all = 1;
    return 0;
}

static int ended(const char *name, struct content c)
{
    struct mr_guard g;
    char why[256];
    u32 ok = (u32)number(&c, 4), failed = (u32)number(&c, 4), step = mr_step_find(name);
    if (step == MR_NONE && mr_is_live) return 0; /* nothing of that step is here */
    if (step == MR_NONE) return mr_say(MR_FAILED_COMMAND, "another node speaks of a step %s", name);
    size_t n = (size_t)(c.end - c.at) < sizeof why ? (size_t)(c.end - c.at) : sizeof why - 1;
    memcpy(why, c.at, n);
    struct mr_step *s = mr_step_at(step);
    mr_lock(&g);
    mr_remote_ok[step] += ok;
    mr_remote_failed[step] += failed;
    s->ended_ok += ok;
    s->ended_failed += failed;
    if (failed && !s->reason && n) s->reason = mr_text_add(why, n);
    if (!s->running) s->idle_since = mr_now();
    mr_step_changed(step);
    mr_unlock(&g);
    return 0;
}

/* `since`: it is waited for, 0: it has just come. `file` gets the record it is about. 0, an exit code, or NOT_SEEN. */
static int take(u8 type, const u8 *content, u32 length, u64 since, u32 *about)
{
    struct content c = {content, content + length};
    char name[1024], path[2200];
    u64 size = number(&c, 2);
    if (size >= sizeof name || size > (u64)(c.end - c.at)) return mr_say(MR_FAILED_COMMAND, "a frame of another node is damaged");
    memcpy(name, c.at, size);
    name[size] = 0;
    c.at += size;
    if (type == MR_FRAME_ENDED) return !since && asides ? NOT_SEEN : ended(name, c);
    if (!is_inside(name)) return mr_say(MR_FAILED_COMMAND, "another node speaks of a file outside: %s", name);
    u32 file = record_of(name);
    if (file == MR_NONE) return 0;
    *about = file;
    if (!since && has_aside(file)) return NOT_SEEN;
    mr_path_of(path, sizeof path, name);
    if (type == MR_FRAME_BEGIN || type == MR_FRAME_CUT) number(&c, 4); /* the generation: relays have nothing to compare it with */
    if (type == MR_FRAME_BEGIN) return begin(file, path, (u8)number(&c, 1));
    if (!(mr_file_at(file)->marks & MR_REMOTE)) return 0; /* it was refused when it began */
    switch (type) {
    case MR_FRAME_DATA: return mr_is_shared ? data_seen(file, path, c, since) : data(file, path, c);
    case MR_FRAME_COMPLETE: return mr_is_shared ? complete_seen(file, path, c, since) : complete(file, path, c);
    case MR_FRAME_CUT: return cut(file, path, (int)number(&c, 1));
    case MR_FRAME_FAIL: {
        char why[256];
        size_t n = (size_t)(c.end - c.at) < sizeof why ? (size_t)(c.end - c.at) : sizeof why - 1;
        memcpy(why, c.at, n);
        why[n] = 0;
        fail(file, why);
        return 0;
    }
    default: return mr_say(MR_FAILED_COMMAND, "a frame of type %u came from another node", type);
    }
}

int mr_take_frame(u8 type, const u8 *content, u32 length)
{
    u32 file = MR_NONE;
    int code = take(type, content, length, 0, &file);
    if (code != NOT_SEEN) return code;
    put_aside(file, type, content, length);
    return 0;
}

int mr_has_aside(void) { return asides != 0; }

int mr_take_aside(void)
{
    static u64 last;
    struct aside **at = &asides;
    int code = 0;
    u64 now = mr_now();
    if (now - last < SIGHT_NS) return 0; /* also when frames come without a pause */
    last = now;
    for (struct aside *a; !code && (a = *at);) {
        int is_first = a->file != MR_NONE || a == asides;
        for (const struct aside *b = asides; b != a && is_first; b = b->next) is_first = a->file != b->file;
        if (is_first && !a->since) a->since = now;
        code = is_first ? take(a->type, a->content, a->length, a->since, &a->file) : NOT_SEEN;
        if (code == NOT_SEEN) {
            at = &a->next;
            code = 0;
            continue;
        }
        *at = a->next;
        if (!*at) asides_end = at;
        free(a);
    }
    return code;
}
