/* A preloaded library that makes a process's writes below a folder fail: the n-th, or all from the n-th on.

   FAULTS_FOLDER names the folder, FAULTS_CONTROL a file that is mapped as `struct control` and shared with children. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct control { int64_t on, seen, first, lasting, error; };

static struct control *control;
static const char *folder;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("FAULTS_CONTROL");
    folder = getenv("FAULTS_FOLDER");
    int file = path ? open(path, O_RDWR) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) control = mapped;
}

static int fails(const char *path) {
    if (!control || !control->on || !path || strncmp(path, folder, strlen(folder))) return 0;
    int64_t number = __sync_add_and_fetch(&control->seen, 1);
    if (number != control->first && !(control->lasting && number > control->first)) return 0;
    errno = (int)control->error;
    return 1;
}

static int fails_for(int file) {
    char link[64], path[4096];
    if (!control || !control->on) return 0;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return 0;
    path[length] = 0;
    return fails(path);
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    return fails_for(file) ? -1 : real(file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    return fails_for(file) ? -1 : real(file, parts, count);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    return fails_for(file) ? -1 : real(file, data, size, place);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return fails_for(file) ? -1 : real(file, data, size, place);
}

int fsync(int file) {
    REAL(int, fsync, int);
    return fails_for(file) ? -1 : real(file);
}

int fdatasync(int file) {
    REAL(int, fdatasync, int);
    return fails_for(file) ? -1 : real(file);
}

int ftruncate(int file, off_t size) {
    REAL(int, ftruncate, int, off_t);
    return fails_for(file) ? -1 : real(file, size);
}

int ftruncate64(int file, off64_t size) {
    REAL(int, ftruncate64, int, off64_t);
    return fails_for(file) ? -1 : real(file, size);
}

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    return fails(to) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir, const char *, mode_t);
    return fails(path) ? -1 : real(path, mode);
}

#define OPEN(name)                                                   \
    int name(const char *path, int flags, ...) {                     \
        REAL(int, name, const char *, int, mode_t);                  \
        va_list rest;                                                \
        va_start(rest, flags);                                       \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;    \
        va_end(rest);                                                \
        return flags & O_CREAT && fails(path) ? -1 : real(path, flags, mode); \
    }

OPEN(open)
OPEN(open64)
