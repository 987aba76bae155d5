/* What a power cut takes: preloaded into a process, it notes how to undo every write that no sync has made safe. */

/*
 * For each database file the notes lie in UNSYNCED, a folder: <name>.undo has one record a write or truncation, emptied
 * by a sync. A record: offset, length of what was there, size of the file before (64-bit little-endian), then the bytes.
 * A sync takes a while longer than it would, so that most kills come before one has ended.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int slower_us = 20000;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Opens the notes of a file that counts, or returns -1. */
static int notes(int file) {
  char link[64], path[PATH_MAX], undo[PATH_MAX + 16];
  const char *folder = getenv("UNSYNCED");
  if (folder == NULL) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return -1;
  path[length] = 0;
  const char *name = strrchr(path, '/');
  if (name == NULL || (strcmp(name, "/sightglass.db") != 0 && strcmp(name, "/sightglass.db-wal") != 0)) return -1;
  snprintf(undo, sizeof undo, "%s%s.undo", folder, name);
  return open(undo, O_WRONLY | O_CREAT | O_APPEND, 0600);
}

/* Notes what lies in a range before it changes. */
static void note(int file, int64_t offset, int64_t length) {
  int to = notes(file);
  if (to < 0) return;
  struct stat now;
  fstat(file, &now);
  int64_t held = now.st_size - offset < length ? now.st_size - offset : length;
  if (held < 0) held = 0;
  char *record = malloc(24 + held);
  if (held > 0) held = pread(file, record + 24, held, offset);
  int64_t head[3] = {offset, held, now.st_size};
  memcpy(record, head, 24);
  if (write(to, record, 24 + held) != 24 + held) abort();
  free(record);
  close(to);
}

static int settled(int file, int result) {
  int to = result == 0 ? notes(file) : -1;
  if (to >= 0) {
    if (ftruncate(to, 0) != 0) abort();
    close(to);
  }
  return result;
}

int fsync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  pthread_mutex_lock(&lock);
  usleep(slower_us);
  int result = settled(file, real(file));
  pthread_mutex_unlock(&lock);
  return result;
}

int fdatasync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  pthread_mutex_lock(&lock);
  usleep(slower_us);
  int result = settled(file, real(file));
  pthread_mutex_unlock(&lock);
  return result;
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
  ssize_t (*real)(int, const void *, size_t, off64_t) =
      (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  pthread_mutex_lock(&lock);
  note(file, at, length);
  ssize_t result = real(file, bytes, length, at);
  pthread_mutex_unlock(&lock);
  return result;
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return pwrite64(file, bytes, length, at); }

static int cut(int file, int64_t size, const char *name) {
  int (*real)(int, off64_t) = (int (*)(int, off64_t))dlsym(RTLD_NEXT, name);
  pthread_mutex_lock(&lock);
  note(file, size, INT64_MAX / 2);
  int result = real(file, size);
  pthread_mutex_unlock(&lock);
  return result;
}

int ftruncate64(int file, off64_t size) { return cut(file, size, "ftruncate64"); }
