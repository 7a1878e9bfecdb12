/* Preloaded into a process: fails calls on files whose path contains FAILING_DISK. The file FAILING_DISK_PLAN names the
   call and the errno, such as "fsync 5"; without that file all calls work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int planned(const char *call, int fd) {
  const char *part = getenv("FAILING_DISK"), *plan = getenv("FAILING_DISK_PLAN");
  char link[64], path[4096], asked[32];
  int error = 0;
  if (!part || !plan) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (!strstr(path, part)) return 0;
  FILE *file = fopen(plan, "r");
  if (!file) return 0;
  int read = fscanf(file, "%31s %d", asked, &error);
  fclose(file);
  return read == 2 && strcmp(asked, call) == 0 ? error : 0;
}

#define FAIL(call, fd)                                                                                                 \
  int error = planned(call, fd);                                                                                       \
  if (error) {                                                                                                         \
    errno = error;                                                                                                     \
    return -1;                                                                                                         \
  }

int fsync(int fd) {
  FAIL("fsync", fd)
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd) {
  FAIL("fsync", fd)
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  FAIL("write", fd)
  return ((ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(fd, bytes, count, at);
}

ssize_t write(int fd, const void *bytes, size_t count) {
  FAIL("write", fd)
  return ((ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, bytes, count);
}
