/* Counts, records and spoils the calls that change a folder's files, for the tests beside it. Loaded by LD_PRELOAD.

   Nothing happens until arm() is called. From then on each call that creates, writes, syncs, renames, links or removes
   something under one folder has a number, from 1; only writes have one if they are what is to be cut short. Calls
   elsewhere pass untouched. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum fault { NONE, KILL, FAIL, SHORT_WRITE, FULL_WRITE, TORN_WRITE };

static char folder[PATH_MAX];
static int at, fault, number, forever, calls, log_file = -1;

/* Have the call with this number go wrong; `forever` has every later one fail too. A log of -1 records nothing. */
void arm(const char *under, int call, int kind, int error, int on, int log) {
    snprintf(folder, sizeof folder, "%s", under);
    at = call, fault = kind, number = error, forever = on, calls = 0, log_file = log;
}

int counted(void) { return calls; }

static int inside(const char *path) {
    size_t length = strlen(folder);
    return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static const char *named(int descriptor, char *buffer) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    buffer[length < 0 ? 0 : length] = 0;
    return buffer;
}

static const char *absolute(int base, const char *path, char *buffer) {
    char start[PATH_MAX];
    if (path[0] == '/') {
        snprintf(buffer, PATH_MAX, "%s", path);
    } else {
        if (base != AT_FDCWD) named(base, start);
        else if (!getcwd(start, sizeof start)) start[0] = 0;
        size_t length = strlen(start);
        memcpy(buffer, start, length);
        snprintf(buffer + length, PATH_MAX - length, "/%s", path);
    }
    return buffer;
}

/* Count a call. Returns 1 if it has to fail, errno set; 2 if it is the one to cut short; else 0. */
static int due(int writes) {
    if (fault >= SHORT_WRITE && !writes) return 0;
    calls++;
    if (calls == at && fault == KILL) kill(getpid(), SIGKILL);
    if (calls == at && writes && fault >= SHORT_WRITE) return 2;
    if ((calls == at && fault == FAIL) || (calls > at && at && forever)) {
        errno = number;
        return 1;
    }
    return 0;
}

static void record(const char *operation, const char *path, const char *other, long offset, const void *data, long size) {
    if (log_file < 0) return;
    int kept = errno;
    char head[2 * PATH_MAX + 128];
    int length = snprintf(head, sizeof head, "%s%c%s%c%s%c%ld%c%ld\n", operation, 0, path, 0, other, 0, offset, 0, size);
    syscall(SYS_write, log_file, head, length);
    if (size) syscall(SYS_write, log_file, data, size);
    errno = kept;
}


static int opened(int base, const char *path, int flags, mode_t mode) {
    char buffer[PATH_MAX];
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    if (!writes || !inside(absolute(base, path, buffer))) return syscall(SYS_openat, base, path, flags, mode);
    int existed = !faccessat(base, path, F_OK, AT_SYMLINK_NOFOLLOW);
    if (due(0)) return -1;
    int result = syscall(SYS_openat, base, path, flags, mode);
    if (result >= 0 && (!existed || flags & O_TRUNC)) record(existed ? "truncate" : "create", buffer, "", 0, 0, 0);
    return result;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); return opened(AT_FDCWD, path, flags, mode); \
    }
#define OPENAT(name) \
    int name(int base, const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); return opened(base, path, flags, mode); \
    }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

ssize_t write(int descriptor, const void *data, size_t size) {
    char path[PATH_MAX];
    if (!folder[0] || !inside(named(descriptor, path))) return syscall(SYS_write, descriptor, data, size);
    int how = due(1);
    if (how == 1) return -1;
    if (how == 2) size = size > 1 ? size / 2 : size;
    long offset = lseek(descriptor, 0, SEEK_CUR);
    ssize_t result = syscall(SYS_write, descriptor, data, size);
    if (how == 2 && fault == TORN_WRITE) kill(getpid(), SIGKILL);
    if (how == 2 && fault == FULL_WRITE) { at = calls, fault = FAIL, forever = 1; }
    if (result > 0) record("write", path, "", offset, data, result);
    return result;
}

static int synced(int descriptor, long call) {
    char path[PATH_MAX];
    if (!folder[0] || !inside(named(descriptor, path))) return syscall(call, descriptor);
    if (due(0)) return -1;
    int result = syscall(call, descriptor);
    if (!result) record("sync", path, "", 0, 0, 0);
    return result;
}
int fsync(int descriptor) { return synced(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync); }

static int two(const char *operation, long call, int from, const char *path, int to, const char *other, int flags) {
    char first[PATH_MAX], second[PATH_MAX];
    absolute(from, path, first), absolute(to, other, second);
    int ours = inside(first) || inside(second);
    if (ours && due(0)) return -1;
    int result = syscall(call, from, path, to, other, flags);
    if (ours && !result) record(operation, first, second, 0, 0, 0);
    return result;
}
int rename(const char *path, const char *other) { return two("rename", SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, 0); }
int renameat(int from, const char *path, int to, const char *other) { return two("rename", SYS_renameat2, from, path, to, other, 0); }
int link(const char *path, const char *other) { return two("link", SYS_linkat, AT_FDCWD, path, AT_FDCWD, other, 0); }
int linkat(int from, const char *path, int to, const char *other, int flags) { return two("link", SYS_linkat, from, path, to, other, flags); }

static int one(const char *operation, long call, int base, const char *path, int argument) {
    char buffer[PATH_MAX];
    int ours = inside(absolute(base, path, buffer));
    if (ours && due(0)) return -1;
    int result = syscall(call, base, path, argument);
    if (ours && !result) record(operation, buffer, "", 0, 0, 0);
    return result;
}
int mkdir(const char *path, mode_t mode) { return one("mkdir", SYS_mkdirat, AT_FDCWD, path, mode); }
int mkdirat(int base, const char *path, mode_t mode) { return one("mkdir", SYS_mkdirat, base, path, mode); }
int unlink(const char *path) { return one("remove", SYS_unlinkat, AT_FDCWD, path, 0); }
int rmdir(const char *path) { return one("remove", SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int base, const char *path, int flags) { return one("remove", SYS_unlinkat, base, path, flags); }

/* shutil.copy sends a file by these where it can; it falls back on write(), which is counted. */
ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) {
    char path[PATH_MAX];
    if (!folder[0] || !inside(named(out, path))) return syscall(SYS_sendfile, out, in, offset, size);
    errno = ENOTSOCK;
    return -1;
}
