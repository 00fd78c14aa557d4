/* The sending half of a relay: what steps of this node write, and how they end. */
#include "tool_relay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SYNC_BYTES (1u << 20)
#define SYNC_NS 20000000u

/* ---- frames ---- */

static void write_all(struct iovec *parts, int count)
{
    while (count) {
        ssize_t n = writev(1, parts, count);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) exit(errno == EPIPE ? 0 : mr_say(MR_FAILED_COMMAND, "cannot send: %s", strerror(errno)));
        while (count && (size_t)n >= parts->iov_len) {
            n -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count) {
            parts->iov_base = (char *)parts->iov_base + n;
            parts->iov_len -= (size_t)n;
        }
    }
}

/* name: a path, or a step. fixed: numbers behind it. tail: bytes or text behind them. */
static void send_frame(u8 type, const char *name, const void *fixed, u32 fixed_size, const void *tail, u32 tail_size)
{
    u8 head[7];
    u16 name_size = (u16)strlen(name);
    u32 length = 2u + name_size + fixed_size + tail_size;
    memcpy(head, &length, 4);
    head[4] = type;
    memcpy(head + 5, &name_size, 2);
    struct iovec parts[] = {
        {head, sizeof head}, {(void *)(u64)name, name_size}, {(void *)(u64)fixed, fixed_size}, {(void *)(u64)tail, tail_size}};
    write_all(parts, 4);
}

/* BEGIN or CUT. */
static void send_start(u8 type, const char *name, u32 generation, u8 flags)
{
    u8 fixed[5];
    memcpy(fixed, &generation, 4);
    fixed[4] = flags;
    send_frame(type, name, fixed, sizeof fixed, 0, 0);
}

/* ---- what was sent ---- */

struct sent {
    u32 file;       /* index of its record */
    u32 generation; /* of the bytes that were sent */
    u64 bytes;      /* from the start */
    int is_begun, is_done;
    int is_again;   /* a node may have it, or a part */
    int is_last;    /* it was complete when its bytes from the start on were sent, or sent again */
    int is_late;    /* told so */
    u64 synced_at;
};

static struct sent *open_files; /* those that are not done, in the order of their records */
static u32 open_count, open_room, seen;
static int has_more;    /* a turn was over before its file */
static u32 seen_before; /* records below this number may have been sent before */

static void add_open(struct sent one)
{
    if (open_count == open_room) open_files = realloc(open_files, (open_room = open_room * 2 + 256) * sizeof *open_files);
    open_files[open_count++] = one;
}

static void look_for_more(void)
{
    u32 files = mr_used(MR_FILES);
    for (u32 file; mr_only_asked && (file = mr_next_asked()) != MR_NONE;) add_open((struct sent){.file = file});
    if (mr_only_asked) return;
    if (mr_look_at_all) { /* what was begun is still among them: only names that were not there are new */
        mr_look_at_all = 0;
        for (u32 i = 0; i < seen; i++) {
            u32 known = 0;
            for (u32 k = 0; k < open_count && !known; k++) known = open_files[k].file == i;
            if (known || mr_load(&mr_file_at(i)->state) != MR_ABSENT) continue;
            add_open((struct sent){.file = i});
        }
    }
    for (; seen < files; seen++) add_open((struct sent){.file = seen, .is_again = seen < seen_before});
}

/* ---- bytes ---- */

static u8 buffer[MR_FRAME_MAX];

/* Reads at an offset, wherever the file lies now: one that moves to the lower layer leaves a hole behind. */
static ssize_t read_at(struct mr_file *f, const char *path, u64 at, u64 size)
{
    for (;;) {
        mr_place_wait(f);
        u32 place = mr_load(&f->place);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) return -errno;
        ssize_t n = pread(fd, buffer, size < sizeof buffer ? size : sizeof buffer, (off_t)at);
        if (n < 0) n = -errno;
        close(fd);
        if (mr_load(&f->place) == place) return n;
    }
}

/* What this node has written is written for all nodes. 0, or an error of the system. */
static int sync_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -errno;
    int err = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return err;
}

/* In a shared directory: tells that others can see the file up to an offset. */
static int send_sight(struct mr_file *f, struct sent *r, const char *name, const char *path, u64 to)
{
    if (r->bytes >= to) return 0;
    if (mr_is_synced) {
        u64 now = mr_now();
        int is_due = to - r->bytes >= SYNC_BYTES || now - r->synced_at >= SYNC_NS;
        if (!is_due && mr_load(&f->state) == MR_GROWING) return 0;
        int err = sync_file(path);
        if (err) return err;
        r->synced_at = now;
    }
    if (mr_load(&f->generation) != r->generation) return -EAGAIN;
    send_frame(MR_FRAME_DATA, name, &to, sizeof to, 0, 0);
    r->bytes = to;
    return 0;
}

/* Sends from `r->bytes` up to an offset, or as much as its turn allows. 0, or an error of the system. */
static int send_bytes(struct mr_file *f, struct sent *r, const char *name, const char *path, u64 to)
{
    if (mr_is_held(r->file)) return 0;
    if (mr_is_shared) return send_sight(f, r, name, path, to);
    if (to > r->bytes && to - r->bytes > MR_TURN) {
        to = r->bytes + MR_TURN;
        has_more = 1;
    }
    while (r->bytes < to) {
        ssize_t n = read_at(f, path, r->bytes, to - r->bytes);
        if (n < 0) return (int)n;
        if (n == 0) return -ENODATA; /* it is shorter than was published: it was cut meanwhile */
        if (mr_load(&f->generation) != r->generation) return -EAGAIN;
        send_frame(MR_FRAME_DATA, name, &r->bytes, sizeof r->bytes, buffer, (u32)n);
        r->bytes += (u64)n;
    }
    return 0;
}

static void send_failure(const char *name, struct sent *r, const char *why)
{
    send_frame(MR_FRAME_FAIL, name, 0, 0, why, (u32)strlen(why));
    r->is_done = 1;
}

static void send_complete(struct mr_file *f, struct sent *r, const char *name, const char *path)
{
    struct stat st;
    struct {
        u64 size;
        u32 mode;
    } __attribute__((packed)) fixed = {~(u64)0, 0};
    int is_there = stat(path, &st) == 0;
    if (!is_there && r->bytes) return send_failure(name, r, "it was removed before all of it was sent to the nodes that read it");
    if (is_there && S_ISREG(st.st_mode)) {
        /* what was written over, or without being published, is sent again or for the first time */
        if (!r->is_last && ((f->marks & MR_OVERWRITTEN) || f->mode != MR_NO_UPDATE)) r->bytes = 0;
        r->is_last = 1;
        int err = send_bytes(f, r, name, path, (u64)st.st_size);
        if (err == -EAGAIN) return;
        if (err) return send_failure(name, r, "it could not be read where it was made");
        if (r->bytes < (u64)st.st_size) return; /* the rest has its turn later */
        fixed.size = (u64)st.st_size;
    }
    if (is_there) fixed.mode = st.st_mode & 07777;
    send_frame(MR_FRAME_COMPLETE, name, &fixed, sizeof fixed, 0, 0);
    r->is_done = 1;
}

/* ---- the look ---- */

/* Who changes the file after it was complete has to know that a copy of it has left. */
static void note_reader(struct mr_file *f, u32 step)
{
    struct mr_guard g;
    mr_lock(&g);
    if (!f->reader && !mr_produces(mr_rule_at(f->rule), step)) f->reader = (u16)(step + 1);
    mr_unlock(&g);
}

/* Whether anything was sent. */
static int send_file(struct sent *r)
{
    struct mr_file *f = mr_file_at(r->file);
    const char *name = mr_text_at(f->path);
    struct sent before = *r;
    struct stat st;
    char path[2200];
    u32 state = mr_load(&f->state), generation = mr_load(&f->generation);
    if (!f->path_len) return 0; /* its record is being made */
    if ((f->marks & MR_REMOTE) && !mr_only_asked) {
        r->is_done = 1;
        return 0;
    }
    if (state == MR_ABSENT) {
        if (r->is_begun) send_start(MR_FRAME_CUT, name, generation, 1);
        *r = (struct sent){.file = r->file};
        return before.is_begun;
    }
    mr_path_of(path, sizeof path, name);
    if (!r->is_begun && state == MR_COMMITTED && lstat(path, &st) < 0) {
        r->is_done = 1; /* its producers ended without making it: the others learn that by their ends */
        return 0;
    }
    if (!r->is_begun) {
        int is_dir = f->is_dir != 0;
        u32 reader = mr_is_live ? 0 : mr_wanted_by(name, is_dir);
        if (!reader && !mr_is_live) {
            r->is_done = 1;
            return 0;
        }
        if (reader) note_reader(f, reader - 1);
        send_start(MR_FRAME_BEGIN, name, generation, (u8)((is_dir ? MR_BEGIN_DIR : 0) | (r->is_again ? MR_BEGIN_AGAIN : 0)));
        r->is_begun = 1;
        r->is_done = is_dir;
        r->generation = generation;
    } else if (generation != r->generation) {
        if (r->bytes) send_start(MR_FRAME_CUT, name, generation, 0);
        r->bytes = 0;
        r->is_last = 0;
        r->generation = generation;
    }
    if (f->is_dir) return 1;
    if (state == MR_FAILED) send_failure(name, r, mr_text_at(f->reason));
    else if (state == MR_COMMITTED) send_complete(f, r, name, path);
    else if (f->mode == MR_NO_UPDATE) {
        if (mr_load(&f->stage)) { /* small writes that are gathered */
            struct mr_guard g;
            mr_lock(&g);
            mr_file_up_to_date(r->file);
            mr_unlock(&g);
        }
        send_bytes(f, r, name, path, mr_load(&f->frontier));
    }
    return memcmp(r, &before, sizeof *r) != 0;
}

struct end {
    u32 ok, failed;
};

/* Those that are held are late with the ends that follow. */
static void tell_late(void)
{
    for (u32 i = 0; i < open_count; i++) {
        struct sent *r = &open_files[i];
        struct mr_file *f = mr_file_at(r->file);
        if (!r->is_begun || r->is_late || mr_load(&f->state) < MR_COMMITTED) continue;
        send_frame(MR_FRAME_LATE, mr_text_at(f->path), 0, 0, 0, 0);
        r->is_late = 1;
    }
}

int mr_send_news(void)
{
    static struct end *told;
    static u32 again_begun, again_told;
    struct mr_guard g;
    u32 steps = mr_used(MR_STEPS), left = 0;
    int news = 0, is_late = 0, is_held = 0;
    struct end now[steps + 1];
    if (!told) told = calloc((mr_is_live ? MR_MAX_STEPS : steps) + 1, sizeof *told);
    /* ends first: what they have completed is sent before them */
    mr_lock(&g);
    for (u32 i = 0; i < steps; i++) {
        const struct mr_step *s = mr_step_at(i);
        now[i] = (struct end){s->ended_ok - mr_remote_ok[i], s->ended_failed - mr_remote_failed[i]};
    }
    mr_unlock(&g);
    u32 again = mr_load(&mr_send_again);
    if (again != again_begun) {
        again_begun = again;
        if (seen > seen_before) seen_before = seen;
        seen = open_count = 0;
    }
    look_for_more();
    has_more = 0;
    for (u32 i = 0; i < open_count; i++) {
        struct sent *r = &open_files[i];
        news |= send_file(r);
        if (!r->is_done && mr_load(&mr_file_at(r->file)->state) >= MR_COMMITTED) *(r->is_begun && mr_is_held(r->file) ? &is_held : &is_late) = 1;
        if (!r->is_done) open_files[left++] = *r;
    }
    open_count = left;
    for (u32 i = 0; i < steps && !is_late && !mr_only_asked; i++) {
        struct end more = {now[i].ok - told[i].ok, now[i].failed - told[i].failed};
        if (!more.ok && !more.failed) continue;
        const struct mr_step *s = mr_step_at(i);
        const char *why = s->reason ? mr_text_at(s->reason) : "";
        if (is_held) tell_late();
        send_frame(MR_FRAME_ENDED, mr_text_at(s->name), &more, sizeof more, why, (u32)strlen(why));
        told[i] = now[i];
        news = 1;
    }
    if (again_told != again_begun && !is_late && !is_held) {
        send_frame(MR_FRAME_AGAIN, "", &again_begun, sizeof again_begun, 0, 0);
        again_told = again_begun;
        news = 1;
    }
    return has_more ? MR_MORE_NEWS : news || is_late ? MR_NEWS : MR_NO_NEWS;
}
