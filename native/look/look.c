/* millrace-look SNAPSHOT FOLDER: what the files of a workflow look like.
 *
 * Reads the paths of a snapshot (src/flow/state/snapshot.ts), which are relative to FOLDER, and writes for each, in the
 * order of the snapshot, four doubles to stdout: size, mtime, ctime in milliseconds, inode. The size is -1 for what
 * does not exist, and -3 for what is left to the reader: directories, and whatever is strange. A file a time in
 * JavaScript takes three times as long. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MISSING = -1, STRANGE = -3, BATCH = 1024 };

struct look {
  double size, mtime, ctime, ino;
};

static struct look batch[BATCH];

static void flush(size_t count) {
  const char *bytes = (const char *)batch;
  size_t left = count * sizeof(struct look);
  while (left > 0) {
    ssize_t written = write(STDOUT_FILENO, bytes, left);
    if (written < 0 && errno == EINTR) continue;
    /* The reader has gone, or there is no room: it looks by itself. */
    if (written <= 0) exit(1);
    bytes += written;
    left -= (size_t)written;
  }
}

/* As Node counts, so that the numbers compare as equal. */
static double milliseconds(struct timespec time) {
  return (double)time.tv_sec * 1000.0 + (double)time.tv_nsec / 1000000.0;
}

static struct look look_at(const char *path) {
  struct stat found;
  if (stat(path, &found) != 0) {
    double size = errno == ENOENT ? MISSING : STRANGE;
    return (struct look){.size = size};
  }
  if (!S_ISREG(found.st_mode)) return (struct look){.size = STRANGE};
  return (struct look){(double)found.st_size, milliseconds(found.st_mtim), milliseconds(found.st_ctim),
                       (double)found.st_ino};
}

/* A number of the header, which is a line of JSON. */
static size_t number_of(const char *header, const char *name) {
  const char *at = strstr(header, name);
  return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int file = open(argv[1], O_RDONLY | O_CLOEXEC);
  struct stat found;
  if (file < 0 || fstat(file, &found) != 0 || found.st_size < 16) return 1;
  size_t length = (size_t)found.st_size;
  /* Private, because each path gets an end. */
  char *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED || chdir(argv[2]) != 0) return 1;
  char *line = memchr(bytes, '\n', length);
  if (!line) return 1;
  *line = 0;
  size_t count = number_of(bytes, "\"files\":");
  size_t size = number_of(bytes, "\"paths\":");
  size_t checksum = 4;
  if (size + checksum + (size_t)(line - bytes) > length) return 1;
  char *path = bytes + length - checksum - size;
  char *end = path + size;
  /* The first byte of the checksum has been of no use to us. */
  *end = 0;
  size_t filled = 0;
  for (size_t i = 0; i < count && path <= end; i++) {
    batch[filled++] = look_at(path);
    if (filled == BATCH) {
      flush(filled);
      filled = 0;
    }
    path += strlen(path) + 1;
  }
  flush(filled);
  return 0;
}
