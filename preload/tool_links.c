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
