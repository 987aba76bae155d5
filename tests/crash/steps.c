/* Numbers the steps a process takes with the names of files, and kills it, or lets the step fail, at one of them. */

/*
 * A step is a call of rename, link, unlink, rmdir, mkdir or a sync. Only paths that contain STEPS_UNDER count.
 *   STEPS_LOG   file to which one line for each step is added: its name and its path
 *   STEPS_AT    number of the step to be hit, from 0; STEPS_HOW: "kill" or an errno, which also fails the steps after
 *               it until STEPS_TIMES have failed
 *   STEPS_NAME  with STEPS_PATH: only steps of this name whose path has this end are counted; all are logged
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long taken = 0;

static long number(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text == NULL ? otherwise : atol(text);
}

static int counts(const char *name, const char *path) {
  const char *only = getenv("STEPS_NAME"), *end = getenv("STEPS_PATH");
  if (only == NULL || end == NULL) return 1;
  size_t length = strlen(path), tail = strlen(end);
  return strcmp(name, only) == 0 && length >= tail && strcmp(path + length - tail, end) == 0;
}

/* Whether this step fails; errno is set then. */
static int hit(const char *name, const char *path) {
  const char *under = getenv("STEPS_UNDER");
  if (under == NULL || path == NULL || strstr(path, under) == NULL) return 0;
  pthread_mutex_lock(&lock);
  int counted = counts(name, path);
  long step = counted ? taken++ : -1;
  const char *log = getenv("STEPS_LOG");
  if (log != NULL) {
    int file = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
    dprintf(file, "%s %s\n", name, path);
    close(file);
  }
  pthread_mutex_unlock(&lock);
  long at = number("STEPS_AT", -1);
  const char *how = getenv("STEPS_HOW");
  if (!counted || at < 0 || how == NULL || step < at) return 0;
  if (strcmp(how, "kill") == 0) {
    kill(getpid(), SIGKILL);
    pause();
  }
  if (step >= at + number("STEPS_TIMES", 1)) return 0;
  errno = atoi(how);
  return 1;
}

static int hit_file(const char *name, int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return hit(name, path);
}

#define STEP(name, parameters, arguments, path)                                       \
  int name parameters {                                                               \
    int(*real) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name);               \
    return hit(#name, path) ? -1 : real arguments;                                    \
  }

STEP(rename, (const char *from, const char *to), (from, to), to)
STEP(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), to)
STEP(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), to)
STEP(link, (const char *from, const char *to), (from, to), to)
STEP(linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), to)
STEP(unlink, (const char *path), (path), path)
STEP(rmdir, (const char *path), (path), path)
STEP(mkdir, (const char *path, mode_t mode), (path, mode), path)

/* Removing a folder with all in it names its files relative to an open folder. */
int unlinkat(int folder, const char *name, int flags) {
  int (*real)(int, const char *, int) = (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");
  int failed = name[0] == '/' || folder == AT_FDCWD ? hit("unlinkat", name) : hit_file("unlinkat", folder);
  return failed ? -1 : real(folder, name, flags);
}

int fsync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return hit_file("fsync", file) ? -1 : real(file);
}

int fdatasync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return hit_file("fdatasync", file) ? -1 : real(file);
}
