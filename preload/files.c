/* The records of governed files, and when they are committed. */
#include "board.h"

static u32 hash_of(const char *s, u32 n)
{
    u64 h = 0x9e3779b97f4a7c15u ^ n;
    if (n > 8) {
        const char *last = s + n - 8; /* the last word overlaps the one before */
        for (; s < last; s += 8) h = (h ^ mr_word(s)) * 0xff51afd7ed558ccdu, h ^= h >> 32;
        s = last, n = 8;
    }
    u64 rest = 0;
    if (n == 8) rest = mr_word(s);
    else while (n--) rest = rest << 8 | (u8)*s++;
    h = (h ^ rest) * 0xc4ceb9fe1a85ec53u;
    h = (h ^ h >> 32) * 0xff51afd7ed558ccdu; /* once more: the last characters are the ones that differ */
    return (u32)(h >> 32) | 1u << 31;
}

static u32 *bucket_of(u32 hash) { return (u32 *)mr_at(MR_BUCKETS, hash & (MR_BUCKET_COUNT - 1)); }

u32 mr_file_find(const char *path, u32 len)
{
    u32 hash = hash_of(path, len);
    const char *files = mr_at(MR_FILES, 0), *text = mr_at(MR_TEXT, 0);
    for (u32 i = __atomic_load_n(bucket_of(hash), __ATOMIC_ACQUIRE); i;) {
        const struct mr_file *f = (const struct mr_file *)(const void *)(files + (u64)(i - 1) * sizeof *f);
        if (f->hash == hash && f->path_len == len && mr_same(len <= sizeof f->name ? f->name : text + f->path, path, len)) return i - 1;
        i = f->next;
    }
    return MR_NONE;
}

static u32 parent_record(const char *path, u32 len)
{
    char above[1024];
    u32 n = len;
    int is_dir;
    if (!mr_b->dir_rules) return 0;
    while (n > 0 && path[n - 1] != '/') n--;
    if (len == 1 && path[0] == '.') return 0;
    if (n > 0) mr_copy(above, path, --n);
    else above[n++] = '.';
    above[n] = 0;
    u32 rule = mr_rule_find(above, n, &is_dir);
    if (rule == MR_NONE || !is_dir) return 0;
    u32 i = mr_file_get(above, n, rule, 1);
    return i == MR_NONE ? 0 : i + 1;
}

static u64 *folder_word(const char *path, u32 len, u64 *bit)
{
    u32 at = hash_of(path, len) % MR_FOLDER_BITS;
    *bit = (u64)1 << (at & 63);
    return &mr_b->folders[at / 64];
}

static void note_folders(const char *path, u32 len)
{
    for (u32 n = 1; n < len; n++) {
        if (path[n] != '/') continue;
        u64 bit, *word = folder_word(path, n, &bit);
        mr_store(word, *word | bit);
    }
}

int mr_has_records_below(const char *path, u32 len)
{
    u64 bit;
    const u64 *word = folder_word(path, len, &bit);
    return (mr_load(word) & bit) || (len == 1 && path[0] == '.');
}

u32 mr_file_get(const char *path, u32 len, u32 rule, int is_dir)
{
    u32 i = mr_file_find(path, len);
    if (i != MR_NONE || len >= 1024) return i;
    u32 parent = parent_record(path, len);
    u32 text = mr_text_add(path, len);
    if (text == MR_NONE) return MR_NONE;
    i = mr_take_run(MR_FILES, 1);
    if (i == MR_NONE) return MR_NONE;
    struct mr_file *f = mr_file_at(i);
    const struct mr_rule *r = mr_rule_at(rule);
    note_folders(path, len);
    f->hash = hash_of(path, len);
    f->path = text;
    f->path_len = len;
    if (len <= sizeof f->name) mr_copy(f->name, path, len);
    f->rule = rule;
    f->is_dir = (u16)is_dir;
    f->commit = r->commit;
    f->count = r->count;
    f->mode = r->mode;
    if (!is_dir && r->commit == MR_ON_N_FILES) {
        f->commit = MR_ON_CLOSE;
        f->count = 1;
    }
    f->parent = parent;
    f->want = ~(u64)0;
    u32 *bucket = bucket_of(f->hash);
    f->next = *bucket;
    __atomic_store_n(bucket, i + 1, __ATOMIC_RELEASE);
    return i;
}

void mr_file_wake(struct mr_file *f)
{
    mr_store(&f->want, ~(u64)0);
    mr_add(&f->seq, 1);
    if (mr_load(&f->waiters)) mr_futex_wake(&f->seq, 0x7fffffff);
}

void mr_file_wake_later(struct mr_file *f)
{
    mr_store(&f->want, ~(u64)0);
    mr_add(&f->seq, 1);
    if (mr_load(&f->waiters)) mr_wake_later(&f->seq);
}

/* Files whose rule looks at other files: their waiters look for themselves. */
static void wake_dependants(void)
{
    for (u32 i = 0, n = mr_used(MR_WAITS); i < n; i++) {
        const struct mr_wait *w = mr_wait_at(i);
        if (!w->slot.used) continue;
        struct mr_file *f = mr_file_at(w->file);
        if (f->commit == MR_ON_FILE || f->commit == MR_ON_N_FILES) mr_file_wake_later(f);
    }
}

void mr_file_begin(u32 file)
{
    struct mr_file *f = mr_file_at(file);
    if (f->state != MR_ABSENT) return;
    if (f->lower) { /* that was another file of this name */
        mr_store(&f->lower, 0);
        mr_add(&f->place, 2);
    }
    mr_store(&f->state, MR_GROWING);
    if (f->parent) {
        mr_file_at(f->parent - 1)->begun_children++;
        wake_dependants();
        if (mr_file_at(f->parent - 1)->commit == MR_ON_N_FILES) mr_file_evaluate(f->parent - 1);
    }
    /* Who waits for a file that grows is woken by its first bytes: before them there is nothing to do but wait
     * again. Directories, and files that begin with something in them, are worth it at once. */
    if (f->is_dir || f->frontier) mr_file_wake_later(f);
}

static void settle(u32 file, u32 state)
{
    struct mr_file *f = mr_file_at(file);
    u32 before = f->state;
    if (f->stage && state == MR_COMMITTED) mr_file_up_to_date(file);
    mr_store(&f->state, state);
    if (f->parent) {
        struct mr_file *d = mr_file_at(f->parent - 1);
        if (before == MR_ABSENT) d->begun_children++;
        if (state == MR_COMMITTED) d->committed_children++;
    }
    mr_file_wake_later(f);
    wake_dependants();
    if (f->parent && mr_file_at(f->parent - 1)->commit == MR_ON_N_FILES) mr_file_evaluate(f->parent - 1);
    mr_add(&mr_b->settled_seq, 1);
    if (mr_load(&mr_b->settled_waiters)) mr_wake_later(&mr_b->settled_seq);
}

void mr_file_complete(u32 file)
{
    if (mr_file_at(file)->state >= MR_COMMITTED) return;
    mr_b->progress++;
    settle(file, MR_COMMITTED);
}

void mr_file_fail(u32 file, u32 step, const char *why)
{
    struct mr_file *f = mr_file_at(file);
    if (f->state == MR_COMMITTED || f->state == MR_FAILED) return;
    u32 text = mr_text_add(why, mr_len(why));
    f->reason = text == MR_NONE ? 0 : text;
    f->reason_step = step;
    mr_b->failed = 1;
    mr_event(MR_EV_FAILED, f->path + 1, step, 0, why);
    settle(file, MR_FAILED);
}

void mr_dispute(u32 file, u32 step)
{
    mr_file_at(file)->marks |= MR_DISPUTED;
    mr_file_fail(file, step, "MR_STREAM_WRITERS: steps on two nodes write it");
}

/* Gone by unlink or rename, or to be written again: as if it had never begun. Its closes stay counted. */
void mr_file_reset(u32 file)
{
    struct mr_file *f = mr_file_at(file);
    if (f->state == MR_COMMITTED || f->state == MR_ABSENT) return;
    mr_cut(f, 0);
    mr_store(&f->state, MR_ABSENT);
    if (f->parent && mr_file_at(f->parent - 1)->begun_children) mr_file_at(f->parent - 1)->begun_children--;
    mr_file_wake_later(f);
}

int mr_step_failed(u32 step)
{
    const struct mr_step *s = mr_step_at(step);
    return s->closed == 2 || (s->closed == 0 && s->ended_failed && !s->running);
}

/* A machine that stood still for a while has not been idle: no process could have started the step in that time. So the
 * grace must have passed, and waiters, who look ten times a second, must have looked all along half of it. */
u32 mr_in_steps;
static int idle_for_long(struct mr_step *s)
{
    u64 now = mr_now(), between = 50000000u;
    if (s->idle_seen < s->idle_since) s->idle_looks = 0;
    if (mr_in_steps && (!s->idle_looks || now - s->idle_seen >= between)) {
        s->idle_seen = now;
        s->idle_looks++;
    }
    return now - s->idle_since >= mr_b->grace_ns && (!mr_in_steps || s->idle_looks * 4u * between >= mr_b->grace_ns);
}

/* No process of the step will write any more. */
int mr_step_over(u32 step)
{
    struct mr_step *s = mr_step_at(step);
    u32 ended = s->ended_ok + s->ended_failed;
    if (s->closed) return 1;
    if (s->running || !ended) return 0;
    if (s->expected) return ended >= s->expected;
    return idle_for_long(s);
}

static void failed_because(u32 file, u32 step)
{
    char why[200];
    struct mr_text t = {why, why + sizeof why};
    const struct mr_step *s = mr_step_at(step);
    mr_put(&t, "its producer ");
    mr_put(&t, mr_text_at(s->name));
    mr_put(&t, s->reason ? " failed: " : " failed");
    if (s->reason) mr_put(&t, mr_text_at(s->reason));
    mr_file_fail(file, step, why);
}

static int deps_state(const struct mr_rule *r, u32 *failed)
{
    for (u32 i = 0; i < r->dep_count; i++) {
        const char *path = mr_text_at(*mr_list_at(r->deps + i));
        u32 len = (u32)mr_len(path);
        int is_dir;
        u32 rule = mr_rule_find(path, len, &is_dir);
        if (rule == MR_NONE) continue; /* a plain file is there or not, it is never committed: do not wait */
        u32 file = mr_file_get(path, len, rule, is_dir);
        if (file == MR_NONE) return MR_GROWING;
        int state = mr_file_evaluate(file);
        if (state == MR_FAILED) *failed = file;
        if (state != MR_COMMITTED) return state;
    }
    return MR_COMMITTED;
}

int mr_file_evaluate(u32 file)
{
    struct mr_file *f = mr_file_at(file);
    const struct mr_rule *r = mr_rule_at(f->rule);
    if (f->state == MR_COMMITTED || f->state == MR_FAILED || (f->marks & MR_REMOTE)) return (int)f->state;
    u32 over = 0, quiet = 0, terminated = 0, culprit = MR_NONE, done = 0, failed_dep = MR_NONE;
    for (u32 i = 0; i < r->producer_count; i++) {
        u32 step = *mr_list_at(r->producers + i);
        const struct mr_step *s = mr_step_at(step);
        terminated += s->ended_ok;
        over += (u32)mr_step_over(step);
        /* on_termination counts a step with an unknown number of instances as ended at once */
        quiet += s->closed || (!s->running && s->ended_ok + s->ended_failed >= (s->expected ? s->expected : 1));
        if (mr_step_failed(step)) culprit = step;
    }
    u32 all = r->producer_count;
    switch (f->commit) {
    case MR_ON_TERMINATION:
        if (culprit == MR_NONE) done = f->count ? terminated >= f->count || over == all : quiet == all;
        break;
    case MR_ON_CLOSE:
        done = f->closes >= f->count;
        /* one of several producers failed: the others may still close it often enough */
        if (!done && culprit != MR_NONE && all > 1 && over < all) culprit = MR_NONE;
        break;
    case MR_ON_N_FILES:
        done = (f->mode == MR_NO_UPDATE ? f->begun_children : f->committed_children) >= f->count;
        break;
    case MR_ON_FILE: {
        int state = deps_state(r, &failed_dep);
        done = state == MR_COMMITTED;
        if (state == MR_FAILED && failed_dep != MR_NONE) {
            mr_file_fail(file, mr_file_at(failed_dep)->reason_step, "a file it is committed with failed");
            return MR_FAILED;
        }
        break;
    }
    }
    if (!done && culprit != MR_NONE) {
        failed_because(file, culprit);
        return MR_FAILED;
    }
    /* all who could write have ended well: it will not become more complete */
    if (!done && over == all && f->commit != MR_ON_FILE) done = 1;
    if (!done) return (int)f->state;
    mr_b->progress++; /* no event: thousands of commits would push the failures out of the ring */
    settle(file, MR_COMMITTED);
    return MR_COMMITTED;
}

void mr_step_changed(u32 step)
{
    for (u32 i = 0, n = mr_used(MR_FILES); i < n; i++) {
        struct mr_file *f = mr_file_at(i);
        if (f->path_len && f->state < MR_COMMITTED && mr_produces(mr_rule_at(f->rule), step)) mr_file_evaluate(i);
    }
    wake_dependants();
}
