/* A disk that fails when a test says so: preloaded into a process, it lets chosen writes and syncs fail. */

/*
 * FAILING_DISK names a control file. Until it is there nothing fails. It holds one line:
 *   <sync|write> <end of the file's name> <calls that still succeed> <calls that fail> <errno>
 * With the first failure, the time in milliseconds is written into a file beside it, with `.failed` behind its name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int armed = 0;
static char call[16], suffix[256];
static long succeeding, failing;
static int number;

static void arm(void) {
  const char *control = getenv("FAILING_DISK");
  FILE *file = control == NULL ? NULL : fopen(control, "r");
  if (file == NULL) return;
  armed = fscanf(file, "%15s %255s %ld %ld %d", call, suffix, &succeeding, &failing, &number) == 5;
  fclose(file);
}

static void note(void) {
  char path[PATH_MAX];
  struct timespec now;
  snprintf(path, sizeof path, "%s.failed", getenv("FAILING_DISK"));
  if (access(path, F_OK) == 0) return;
  clock_gettime(CLOCK_REALTIME, &now);
  FILE *file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%lld\n", now.tv_sec * 1000LL + now.tv_nsec / 1000000);
  fclose(file);
}

static int is_meant(const char *name, int file) {
  char link[64], path[PATH_MAX];
  if (strcmp(name, call) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  size_t end = strlen(suffix);
  return length >= (ssize_t)end && memcmp(path + length - end, suffix, end) == 0;
}

/* Whether this call fails; errno is set then. */
static int fails(const char *name, int file) {
  int failed = 0;
  pthread_mutex_lock(&lock);
  if (!armed) arm();
  if (armed && is_meant(name, file)) {
    if (succeeding > 0) succeeding--;
    else if (failing > 0) {
      failing--;
      failed = 1;
      note();
    }
  }
  pthread_mutex_unlock(&lock);
  if (failed) errno = number;
  return failed;
}

int fsync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return fails("sync", file) ? -1 : real(file);
}

int fdatasync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return fails("sync", file) ? -1 : real(file);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) {
  ssize_t (*real)(int, const void *, size_t, off_t) =
      (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  return fails("write", file) ? -1 : real(file, bytes, length, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
  ssize_t (*real)(int, const void *, size_t, off64_t) =
      (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  return fails("write", file) ? -1 : real(file, bytes, length, at);
}
