// SPDX-License-Identifier: MIT
#include "agent/lib/own_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGH 4096 /* each number below takes the kernel some 8 bytes */

int own_fd_move(int fd)
{
	struct rlimit most;
	int high = HIGH, moved;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &most))
		return fd;
	if (most.rlim_cur < 2 * HIGH)
		high = (int)most.rlim_cur * 3 / 4;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, high);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

/* Not by glibc: its fstat has another name since 2.33. */
struct own_fd own_fd_of(int fd)
{
	struct stat st;

	if (fd < 0 || syscall(SYS_fstat, fd, &st))
		return (struct own_fd){ 0 };
	return (struct own_fd){ st.st_dev, st.st_ino };
}

bool own_fd_is(int fd, struct own_fd own)
{
	const struct own_fd now = own_fd_of(fd);

	return now.inode && now.inode == own.inode && now.device == own.device;
}

void own_fd_close(int *fd, struct own_fd own)
{
	if (own_fd_is(*fd, own))
		close(*fd);
	*fd = -1;
}
