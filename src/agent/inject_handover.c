// SPDX-License-Identifier: MIT
#include "agent/inject_handover.h"

#ifdef __x86_64__

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef PIDFD_THREAD /* Linux 6.9 */
#define PIDFD_THREAD O_EXCL
#endif

static int get_descriptor(const struct inject_target *target, pid_t tid, int number)
{
	/* its own table of descriptors, also when the main thread has ended */
	int pidfd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD), fd;

	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	fd = fd < 0 ? -errno : fd;
	close(pidfd);
	return fd;
}

static int fill(int fd, const void *bytes, size_t n)
{
	const char *from = bytes;

	while (n) {
		ssize_t put = write(fd, from, n);

		if (put <= 0)
			return put < 0 ? -errno : -ENOSPC;
		from += put;
		n -= (size_t)put;
	}
	return 0;
}

/*
 * A name for the memfd that the loader has never seen: it compares names before it looks at files,
 * and descriptors' numbers come again. The kernel sees "//" and "/./" as "/".
 */
static void write_path(char *path, size_t size, uint64_t salt, int number)
{
	int n = snprintf(path, size, "/proc/thread-self/fd");

	for (int bit = 0; bit < 24; bit++)
		n += snprintf(path + n, size - (size_t)n, salt >> bit & 1 ? "/." : "/");
	snprintf(path + n, size - (size_t)n, "/%d", number);
}

/* What the target's own calls answered. */
static int check_made(const struct inject_target *target, const struct area *area, struct err *err)
{
	int memfd = (int)area->step[STEP_MEMFD].result, pair = (int)area->step[STEP_PAIR].result;
	int report = (int)area->step[STEP_REPORT_PAIR].result;

	if (!target->loaded && memfd < 0)
		return err_set(err, memfd, "process %d could not make a memfd: %s%s", target->pid,
		               strerror(-memfd),
		               memfd == -EACCES ? "; vm.memfd_noexec forbids it (sysctl "
		                                  "vm.memfd_noexec=0)"
		                                : "");
	if (pair < 0 || report < 0)
		return err_set(err, pair < 0 ? pair : report,
		               "process %d could not make a pair of sockets: %s", target->pid,
		               strerror(pair < 0 ? -pair : -report));
	return 0;
}

/*
 * The target may have put something else in its place: where a write waits for somebody, has a
 * meaning to the kernel, or is of use to it because it is root who writes. Files of a tmpfs have
 * seals as well, but F_SEAL_SEAL among them from the beginning, and nothing takes a seal away: one
 * that can still be sealed was made by memfd_create with MFD_ALLOW_SEALING, and has no name.
 */
static bool is_fresh_memfd(int fd)
{
	struct statfs fs;
	struct stat st;

	return fcntl(fd, F_GET_SEALS) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       !st.st_nlink && !st.st_size && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static int fill_library(const struct inject_options *options, const struct inject_target *target,
                        pid_t tid, const struct plan *plan, uint64_t base, const struct area *area,
                        struct err *err)
{
	int number = (int)area->step[STEP_MEMFD].result;
	int fd = get_descriptor(target, tid, number), rc;
	char path[sizeof(area->path)];

	if (fd < 0)
		return err_set(err, fd, "taking the memfd of process %d: %s", target->pid,
		               strerror(-fd));
	if (!is_fresh_memfd(fd)) {
		close(fd);
		return err_set(err, EBADF, "process %d has put another file in place of a memfd",
		               target->pid);
	}
	rc = fill(fd, options->library, options->bytes);
	close(fd);
	write_path(path, sizeof(path), plan->mark, number);
	if (!rc && !target_write(target, base + offsetof(struct area, path), path, sizeof(path)))
		rc = -EFAULT;
	return rc ? err_set(err, rc, "writing the library into process %d: %s", target->pid,
	                    strerror(-rc))
	          : 0;
}

/* The target may have put something else in its place, as above. */
static bool is_our_kind(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static int take_sockets(const struct inject_target *target, pid_t tid, const struct area *area,
                        struct borrowed *borrowed, struct err *err)
{
	int rc;

	borrowed->socket = get_descriptor(target, tid, area->pair[0]);
	borrowed->report = get_descriptor(target, tid, area->report[0]);
	rc = borrowed->socket < 0 ? borrowed->socket : borrowed->report;
	if (rc >= 0 && (!is_our_kind(borrowed->socket) || !is_our_kind(borrowed->report)))
		rc = -ENOTSOCK;
	return rc < 0 ? err_set(err, rc, "taking the sockets of process %d: %s", target->pid,
	                        strerror(-rc))
	              : 0;
}

int handover(const struct inject_options *options, const struct inject_target *target, pid_t tid,
             const struct plan *plan, uint64_t base, struct borrowed *borrowed, struct err *err)
{
	uint64_t go = SYS_getpid;
	struct area area;
	int rc;

	if (!target_read(target, base, &area, sizeof(area)))
		return err_set(err, EFAULT, "reading the memory of process %d failed", target->pid);
	rc = check_made(target, &area, err);
	if (!rc)
		rc = take_sockets(target, tid, &area, borrowed, err);
	if (!rc && !target->loaded)
		rc = fill_library(options, target, tid, plan, base, &area, err);
	if (!rc && !target_write(target, base + offsetof(struct area, go), &go, sizeof(go)))
		rc = err_set(err, EFAULT, "writing to the memory of process %d failed",
		             target->pid);
	return rc;
}

#endif
