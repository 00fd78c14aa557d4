/* Reading a compiled plan (plan-format.md) into an empty board. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS 12

struct line {
    int number, count;
    char *field[FIELDS];
};

/* In place; "-" alone is the empty string. */
static int unescape(char *s)
{
    if (s[0] == '-' && !s[1]) {
        s[0] = 0;
        return 1;
    }
    char *to = s;
    for (; *s; s++) {
        if (*s != '%') {
            *to++ = *s;
            continue;
        }
        char hex[3] = {s[1], s[1] ? s[2] : 0, 0}, *end;
        long v = strtol(hex, &end, 16);
        if (end != hex + 2 || v == 0) return 0;
        *to++ = (char)v;
        s += 2;
    }
    *to = 0;
    return 1;
}

static int split(char *text, int number, struct line *l)
{
    *l = (struct line){.number = number};
    for (char *p = text; p && l->count < FIELDS;) {
        l->field[l->count++] = p;
        p = strchr(p, '\t');
        if (p) *p++ = 0;
    }
    return l->count;
}

static int bad(const struct line *l, char *why, size_t size, const char *what)
{
    snprintf(why, size, "%s", what);
    return l->number;
}

static u32 keep(const char *s) { return mr_text_add(s, strlen(s)); }

static int read_step(struct line *l, char *why, size_t size)
{
    if (l->count < 4 || !unescape(l->field[2])) return bad(l, why, size, "step ID NAME INSTANCES expected");
    if ((u32)atoi(l->field[1]) != mr_used(MR_STEPS)) return bad(l, why, size, "step ids must be 0, 1, 2 … in order");
    if (mr_step_find(l->field[2]) != MR_NONE) return bad(l, why, size, "two steps have the same name");
    u32 i = mr_take_run(MR_STEPS, 1);
    if (i == MR_NONE) return bad(l, why, size, "too many steps");
    mr_step_at(i)->name = keep(l->field[2]);
    mr_step_at(i)->expected = (u32)atoi(l->field[3]);
    return 0;
}

static int pattern(struct mr_rule *r, const char *how, char *text)
{
    r->glob = !strcmp(how, "glob");
    if (!r->glob && strcmp(how, "exact")) return 0;
    if (!unescape(text) || !*text || *text == '/') return 0;
    r->text = keep(text);
    r->text_len = (u32)strlen(text);
    return r->text != MR_NONE;
}

/* A comma separated list: numbers below limit, or names (limit 0). The list's start, or MR_NONE. */
static u32 read_list(char *text, u32 limit, u32 *count)
{
    u32 start = mr_used(MR_LISTS);
    *count = 0;
    if (!strcmp(text, "-")) return start;
    for (char *save = 0, *p = strtok_r(text, ",", &save); p; p = strtok_r(0, ",", &save)) {
        char *end = p;
        u32 v = (u32)strtoul(p, &end, 10);
        if (limit && (*end || end == p || v >= limit)) return MR_NONE;
        if (!limit) v = unescape(p) ? keep(p) : MR_NONE;
        u32 at = v == MR_NONE ? MR_NONE : mr_take_run(MR_LISTS, 1);
        if (at == MR_NONE) return MR_NONE;
        *mr_list_at(at) = v;
        ++*count;
    }
    return start;
}

static int read_commit(const char *text, struct mr_rule *r)
{
    static const char *const name[] = {"on_termination", "on_close", "on_file", "on_n_files"};
    for (u32 i = 0; i < 4; i++) {
        size_t n = strlen(name[i]);
        if (strncmp(text, name[i], n) || (text[n] && text[n] != ':')) continue;
        r->commit = i;
        r->count = text[n] ? (u32)strtoul(text + n + 1, 0, 10) : i == MR_ON_CLOSE;
        return !((i == MR_ON_CLOSE || i == MR_ON_N_FILES) && r->count == 0);
    }
    return 0;
}

static int read_rule(struct line *l, u32 *index, char *why, size_t size)
{
    struct mr_rule r = {0};
    if (l->count < 7) return bad(l, why, size, "rule file|dir exact|glob PATTERN PRODUCERS COMMIT MODE expected");
    if (!strcmp(l->field[1], "dir")) r.kind = MR_RULE_DIR;
    else if (strcmp(l->field[1], "file")) return bad(l, why, size, "a rule is for file or dir");
    if (!pattern(&r, l->field[2], l->field[3])) return bad(l, why, size, "bad pattern");
    r.producers = read_list(l->field[4], mr_used(MR_STEPS), &r.producer_count);
    if (r.producers == MR_NONE) return bad(l, why, size, "producers must be step ids");
    if (!r.producer_count) return bad(l, why, size, "a rule needs a producer");
    if (!read_commit(l->field[5], &r)) return bad(l, why, size, "unknown commit rule");
    if (r.commit == MR_ON_N_FILES && r.kind != MR_RULE_DIR) return bad(l, why, size, "on_n_files is for directories");
    if (!strcmp(l->field[6], "no_update")) r.mode = MR_NO_UPDATE;
    else if (strcmp(l->field[6], "update")) return bad(l, why, size, "mode is update or no_update");
    if (l->count > 7) r.deps = read_list(l->field[7], 0, &r.dep_count);
    if (r.deps == MR_NONE || (r.commit == MR_ON_FILE && !r.dep_count)) return bad(l, why, size, "on_file needs files");
    u32 i = mr_take_run(MR_RULES, 1);
    if (i == MR_NONE) return bad(l, why, size, "too many rules");
    *mr_rule_at(i) = r;
    mr_b->dir_rules += r.kind == MR_RULE_DIR;
    if (index) *index = i;
    return 0;
}

static int read_mark(struct line *l, u32 kind, int at, char *why, size_t size)
{
    struct mr_rule r = {.kind = kind};
    if (l->count < at + 2 || !pattern(&r, l->field[at], l->field[at + 1])) return bad(l, why, size, "exact|glob PATTERN expected");
    u32 i = mr_take_run(MR_RULES, 1);
    if (i == MR_NONE) return bad(l, why, size, "too many rules");
    *mr_rule_at(i) = r;
    mr_b->excludes += kind == MR_RULE_EXCLUDE;
    return 0;
}

static int read_line(struct line *l, char *why, size_t size)
{
    const char *what = l->field[0];
    if (!strcmp(what, "step")) return read_step(l, why, size);
    if (!strcmp(what, "rule")) return read_rule(l, 0, why, size);
    if (!strcmp(what, "exclude")) return read_mark(l, MR_RULE_EXCLUDE, 1, why, size);
    if (!strcmp(what, "permanent")) return read_mark(l, MR_RULE_PERMANENT, 1, why, size);
    if (!strcmp(what, "storage") && l->count > 1)
        return read_mark(l, !strcmp(l->field[1], "memory") ? MR_RULE_MEMORY : MR_RULE_FS, 2, why, size);
    if (!strcmp(what, "workflow") || !strcmp(what, "dir")) return 0; /* mr_plan_head */
    if ((!strcmp(what, "layer") || !strcmp(what, "inputs")) && l->count > 1 && unescape(l->field[1]) && l->field[1][0] == '/') {
        u32 text = keep(l->field[1]);
        if (text == MR_NONE || strlen(l->field[1]) > 100) return bad(l, why, size, "a path of at most 100 bytes expected");
        *(*what == 'l' ? &mr_b->layer : &mr_b->inputs) = text;
        return 0;
    }
    if (!strcmp(what, "limit") && l->count > 1) mr_b->limit_ns = (u64)(atof(l->field[1]) * 1e9);
    else if (!strcmp(what, "grace") && l->count > 1) mr_b->grace_ns = (u64)(atof(l->field[1]) * 1e9);
    else return bad(l, why, size, "unknown record");
    return 0;
}

/* One more line for a board in use, under its lock: a step by its name alone, or a rule for one file with the name
 * of its producer in place of the number. */
int mr_plan_more(char *text, char *why, size_t size)
{
    struct line l;
    char number[2][16];
    u32 rule;
    split(text, 1, &l);
    if (!strcmp(l.field[0], "step") && l.count == 2) {
        snprintf(number[0], sizeof number[0], "%u", mr_used(MR_STEPS));
        l.field[3] = "1";
        l.field[2] = l.field[1];
        l.field[1] = number[0];
        l.count = 4;
        return read_step(&l, why, size);
    }
    if (strcmp(l.field[0], "rule") || l.count < 7 || strcmp(l.field[2], "exact")) return bad(&l, why, size, "step or rule expected");
    u32 step = unescape(l.field[4]) ? mr_step_find(l.field[4]) : MR_NONE;
    if (step == MR_NONE) return bad(&l, why, size, "no such step");
    snprintf(number[1], sizeof number[1], "%u", step);
    l.field[4] = number[1];
    int err = read_rule(&l, &rule, why, size);
    if (err) return err;
    /* its record is there from the start, so that thousands of rules need not be searched for it */
    const struct mr_rule *r = mr_rule_at(rule);
    if (mr_file_get(mr_text_at(r->text), r->text_len, rule, r->kind == MR_RULE_DIR) == MR_NONE) return bad(&l, why, size, "the board is full");
    return 0;
}

/* Calls each for the lines between header and end; a line number is an error. */
static int each_line(const char *text, int (*each)(struct line *, void *), void *data, char *why, size_t size)
{
    char *copy = strdup(text), *next = copy;
    int number = 0, ended = 0, err = 0;
    while (next && *next && !err) {
        char *line = next;
        struct line l;
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        number++;
        if (!*line) continue;
        split(line, number, &l);
        if (ended) err = bad(&l, why, size, "text after end");
        else if (number == 1) {
            if (l.count != 2 || strcmp(l.field[0], "millrace-plan") || strcmp(l.field[1], "1"))
                err = bad(&l, why, size, "not a plan of version 1");
        } else if (!strcmp(l.field[0], "end")) ended = 1;
        else err = each(&l, data);
    }
    if (!err && !ended) {
        snprintf(why, size, "the plan is cut short: no end");
        err = number + 1;
    }
    free(copy);
    return err;
}

struct loading {
    char *why;
    size_t size;
};

static int load_line(struct line *l, void *data)
{
    struct loading *g = data;
    return read_line(l, g->why, g->size);
}

int mr_plan_load(const char *text, char *why, size_t size)
{
    struct loading g = {why, size};
    mr_b->grace_ns = 3000000000u;
    return each_line(text, load_line, &g, why, size);
}

static int head_line(struct line *l, void *data)
{
    struct mr_plan *p = data;
    char **to = !strcmp(l->field[0], "workflow") ? &p->workflow : !strcmp(l->field[0], "dir") ? &p->dir : 0;
    if (!to) return 0;
    if (l->count < 2 || !unescape(l->field[1]) || !*l->field[1]) return l->number;
    free(*to);
    *to = strdup(l->field[1]);
    return 0;
}

int mr_plan_head(const char *text, struct mr_plan *plan, char *why, size_t size)
{
    snprintf(why, size, "bad name");
    int err = each_line(text, head_line, plan, why, size);
    if (!err && (!plan->workflow || !plan->dir || plan->dir[0] != '/' || strlen(plan->workflow) > 100)) {
        snprintf(why, size, "workflow (at most 100 bytes) and an absolute dir are needed");
        err = 1;
    }
    return err;
}
