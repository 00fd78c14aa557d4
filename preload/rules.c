/* Which rule governs a path. */
#include "board.h"

/* One bracket expression at p (after '['); sets *end behind it. -1: no closing bracket, '[' is itself. */
static int bracket(const char *p, char c, const char **end)
{
    int negated = *p == '!' || *p == '^', found = 0;
    if (negated) p++;
    for (const char *first = p; *p != ']' || p == first; p++) {
        if (!*p) return -1;
        if (p[1] == '-' && p[2] && p[2] != ']') {
            if ((u8)c >= (u8)p[0] && (u8)c <= (u8)p[2]) found = 1;
            p += 2;
        } else if (*p == c) {
            found = 1;
        }
    }
    *end = p + 1;
    return found != negated;
}

int mr_glob(const char *p, const char *t)
{
    const char *star = 0, *again = 0;
    for (;;) {
        const char *next = p + 1;
        int ok = 0;
        if (*p == '*') {
            star = next;
            again = t;
            p = next;
            continue;
        }
        if (!*t) return !*p;
        if (*p == '?') ok = 1;
        else if (*p == '[') {
            ok = bracket(p + 1, *t, &next);
            if (ok < 0) ok = *t == '[', next = p + 1;
        } else if (*p == '\\' && p[1]) {
            ok = p[1] == *t;
            next = p + 2;
        } else if (*p) {
            ok = *p == *t;
        }
        if (ok) {
            p = next;
            t++;
        } else if (star) {
            p = star;
            t = ++again;
        } else {
            return 0;
        }
    }
}

int mr_rule_matches(const struct mr_rule *r, const char *path, u32 len)
{
    const char *text = mr_text_at(r->text);
    /* the managed directory itself is meant only where it is named: `*` is what lies in it */
    if (r->glob) return !(len == 1 && path[0] == '.') && mr_glob(text, path);
    return len == r->text_len && mr_same(text, path, len);
}

int mr_is_marked(u32 kind, const char *path, u32 len)
{
    for (u32 i = 0, n = mr_used(MR_RULES); i < n; i++) {
        const struct mr_rule *r = mr_rule_at(i);
        if (r->kind == kind && mr_rule_matches(r, path, len)) return 1;
    }
    return 0;
}

static u32 first(u32 kind, const char *path, u32 len)
{
    for (u32 i = 0, n = mr_used(MR_RULES); i < n; i++) {
        const struct mr_rule *r = mr_rule_at(i);
        if (r->kind == kind && mr_rule_matches(r, path, len)) return i;
    }
    return MR_NONE;
}

/* The parent of a relative path, in place; the parent of a top-level name is ".". 0 when there is none. */
static u32 climb(char *path, u32 n)
{
    if (n == 1 && path[0] == '.') return 0;
    while (n > 0 && path[n - 1] != '/') n--;
    if (n > 1) {
        path[--n] = 0;
        return n;
    }
    mr_copy(path, ".", 2);
    return 1;
}

/* A wildcard also matches '/', so a pattern of directories matches what is inside them too. The topmost
 * match is the directory, the rest are its files. */
u32 mr_rule_find(const char *path, u32 len, int *is_dir)
{
    char above[1024];
    *is_dir = 0;
    if (len >= sizeof above || (mr_b->excludes && mr_is_marked(MR_RULE_EXCLUDE, path, len))) return MR_NONE;
    u32 file = first(MR_RULE_FILE, path, len);
    if (!mr_b->dir_rules) return file;
    u32 own = first(MR_RULE_DIR, path, len);
    if (own != MR_NONE && !mr_rule_at(own)->glob) {
        *is_dir = 1;
        return own;
    }
    mr_copy(above, path, len + 1);
    u32 inherited = MR_NONE;
    for (u32 n = climb(above, len); n && inherited == MR_NONE; n = climb(above, n))
        inherited = first(MR_RULE_DIR, above, n);
    if (own != MR_NONE && own != inherited && (file == MR_NONE || mr_rule_at(file)->glob)) {
        *is_dir = 1;
        return own;
    }
    return file != MR_NONE ? file : inherited;
}

int mr_produces(const struct mr_rule *r, u32 step)
{
    for (u32 i = 0; i < r->producer_count; i++)
        if (*mr_list_at(r->producers + i) == step) return 1;
    return 0;
}

static int is_wild(char c) { return c == '*' || c == '?' || c == '[' || c == '\\'; }

/* Could the rule be about something whose name begins with path and a slash? */
static int may_match_below(const struct mr_rule *r, const char *path, u32 len)
{
    const char *text = mr_text_at(r->text);
    u32 i = 0;
    if (r->kind != MR_RULE_FILE && r->kind != MR_RULE_DIR) return 0;
    if ((len == 1 && path[0] == '.') || (r->kind == MR_RULE_DIR && mr_equal(text, "."))) return 1;
    while (i < len && text[i] == path[i] && !(r->glob && is_wild(text[i]))) i++;
    if (r->glob && is_wild(text[i])) return 1;
    if (i == len && text[i] == '/') return 1;
    return r->kind == MR_RULE_DIR && !text[i] && (i == len || path[i] == '/'); /* what lies in a directory has its rule */
}

int mr_may_govern_below(u32 step, const char *path, u32 len)
{
    for (u32 i = 0, n = mr_used(MR_RULES); i < n; i++)
        if (mr_produces(mr_rule_at(i), step) && may_match_below(mr_rule_at(i), path, len)) return 1;
    return 0;
}

u32 mr_step_find(const char *name)
{
    for (u32 i = 0, n = mr_used(MR_STEPS); i < n; i++)
        if (mr_equal(mr_text_at(mr_step_at(i)->name), name)) return i;
    return MR_NONE;
}
