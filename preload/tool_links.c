/* The links that there are when a board is made: in the managed directory, and outside, leading into it. */
#include "tool.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What there is besides files and directories. A large tree is not searched to the end: it may have all of it. */
#define MR_PATH 1001 /* names that are longer are not managed */
#define SEARCHED 20000 /* but for files */
static u32 oddities(const char *root, const char *dir, int *left)
{
    u32 found = 0;
    char path[PATH_MAX], target[PATH_MAX];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (e->d_type == DT_REG) continue;
        if ((*left)-- <= 0 || snprintf(path, sizeof path, "%s/%s", dir, e->d_name) > 2000) {
            found |= MR_LINKS | MR_DIR_LINKS | MR_SPECIAL;
            break;
        }
        if (lstat(path, &st) < 0 || S_ISREG(st.st_mode)) continue;
        if (S_ISDIR(st.st_mode)) found |= oddities(root, path, left);
        else found |= S_ISLNK(st.st_mode) ? MR_LINKS : MR_SPECIAL;
        if (!S_ISLNK(st.st_mode)) continue;
        if (stat(path, &st) < 0) found |= MR_DIR_LINKS; /* it may come to be one */
        else if (S_ISDIR(st.st_mode) && realpath(path, target) && !strncmp(target, root, strlen(root))) found |= MR_DIR_LINKS;
    }
    if (d) closedir(d);
    return found;
}

u32 mr_oddities(const char *dir)
{
    int left = SEARCHED;
    return oddities(dir, dir, &left);
}

/* ---- files with several names ---- */

#define COUNTED 500000 /* files that are looked at */

struct linked {
    u64 dev, ino;
    u32 file;
};

struct names {
    struct linked *at;
    u32 count, room, left;
};

static void note_name(struct names *all, const char *rel, const struct stat *st)
{
    int is_dir;
    u32 len = (u32)strlen(rel), rule = mr_rule_find(rel, len, &is_dir);
    if (rule == MR_NONE || is_dir) return;
    if (all->count == all->room) {
        u32 room = all->room ? all->room * 2 : 64;
        struct linked *more = realloc(all->at, room * sizeof *more);
        if (!more) return;
        all->at = more;
        all->room = room;
    }
    u32 file = mr_file_get(rel, len, rule, 0);
    if (file == MR_NONE) return;
    mr_file_at(file)->inode = (u32)st->st_ino;
    all->at[all->count++] = (struct linked){(u64)st->st_dev, (u64)st->st_ino, file};
}

static void names_below(struct names *all, DIR *d, const char *rel)
{
    char path[MR_PATH];
    for (struct dirent *e; d && all->left && (e = readdir(d));) {
        struct stat st;
        if ((e->d_type != DT_REG && e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        all->left--;
        if (snprintf(path, sizeof path, "%s%s%s", rel, *rel ? "/" : "", e->d_name) >= (int)sizeof path) continue;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) continue;
        if (S_ISREG(st.st_mode) && st.st_nlink > 1) note_name(all, path, &st);
        if (!S_ISDIR(st.st_mode)) continue;
        int below = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *sub = below < 0 ? 0 : fdopendir(below);
        if (sub) names_below(all, sub, path);
        else if (below >= 0) close(below);
    }
    if (d) closedir(d);
}

static int by_number(const void *a, const void *b)
{
    const struct linked *x = a, *y = b;
    return x->dev != y->dev ? (x->dev < y->dev ? -1 : 1) : x->ino != y->ino ? (x->ino < y->ino ? -1 : 1) : 0;
}

/* The rules must be known. Each name that one of them is about gets its record now, so that the file is found through
 * any of its names. */
void mr_known_names(const char *dir)
{
    struct names all = {.left = COUNTED};
    names_below(&all, opendir(dir), "");
    if (all.count) qsort(all.at, all.count, sizeof *all.at, by_number);
    for (u32 i = 1; i < all.count; i++)
        if (by_number(&all.at[i - 1], &all.at[i]) == 0) mr_names_join(all.at[i - 1].file, all.at[i].file);
    if (all.count) mr_b->links |= MR_HARD_LINKS;
    free(all.at);
}

/* ---- outside ---- */

/* Do both lie on one way from the root? But for the root itself. */
static int leads_in(const char *target, const char *dir)
{
    size_t a = strlen(target), b = strlen(dir), common = a < b ? a : b;
    const char *longer = a < b ? dir : target;
    return a > 1 && !strncmp(target, dir, common) && (a == b || longer[common] == '/');
}

static u32 look_in(const char *folder, const char *dir)
{
    u32 found = 0;
    char path[PATH_MAX], target[PATH_MAX];
    DIR *d = folder ? opendir(folder) : 0;
    int left = SEARCHED;
    for (struct dirent *e; d && !found && left-- > 0 && (e = readdir(d));) {
        if (e->d_type != DT_LNK || snprintf(path, sizeof path, "%s/%s", folder, e->d_name) > 2000) continue;
        if (realpath(path, target) && leads_in(target, dir)) found = MR_OUTER_LINKS;
    }
    if (d) closedir(d);
    return found;
}

/* Links are looked for where people have them. The others are found when a program is started with one (outer.c). */
u32 mr_ways_in(const char *dir)
{
    const char *tmp = getenv("TMPDIR");
    return look_in(getenv("HOME"), dir) | look_in(".", dir) | look_in(tmp && *tmp ? tmp : "/tmp", dir);
}
