// SPDX-License-Identifier: MIT
/*
 * Ways to a device's descriptor: system calls that open one, and those that give another for one
 * that is open. Each is used for one ioctl, with a number of its own: 0x60, 0x61 and so on.
 *
 *   devicefds DEVICE FOLDER
 *
 * DEVICE is in /dev; in FOLDER a link to it is made.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned used;

static void use(int fd)
{
	char block[16] = { 0 };

	if (fd < 0) {
		perror("devicefds");
		_exit(1);
	}
	ioctl(fd, 0xc0104660u + used++, block);
}

/* The same file, through a message to itself. */
static int passed(int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 'x';
	struct iovec vector = { &byte, 1 };
	struct msghdr message = { .msg_iov = &vector,
		                  .msg_iovlen = 1,
		                  .msg_control = control.bytes,
		                  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int ends[2], got = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return -1;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(ends[0], &message, 0) == 1 && recvmsg(ends[1], &message, 0) == 1)
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
	return got;
}

static void open_all(const char *device, const char *folder)
{
	struct open_how how = { .flags = O_RDWR };
	int dev = open("/dev", O_PATH | O_DIRECTORY);
	char link[512];

	snprintf(link, sizeof(link), "%s/link", folder);
	unlink(link);
	if (symlink(device, link))
		perror(link);
#ifdef SYS_open
	use((int)syscall(SYS_open, device, O_RDWR));
#else
	use(open(device, O_RDWR));
#endif
	use((int)syscall(SYS_openat, AT_FDCWD, device, O_RDWR));
	use((int)syscall(SYS_openat2, AT_FDCWD, device, &how, sizeof(how)));
	use(openat(dev, device + strlen("/dev/"), O_RDWR));
	use(open(link, O_RDWR));
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 3)
		return 2;
	open_all(argv[1], argv[2]);
	fd = open(argv[1], O_RDWR);
	use(dup(fd));
	use(dup2(fd, 200));
	use(dup3(fd, 201, O_CLOEXEC));
	use(fcntl(fd, F_DUPFD, 202));
	use(passed(fd));
	close(200);
	printf("%u\n", used);
	fflush(stdout);
	syscall(SYS_close_range, 201u, ~0u, 0u);
	return 0;
}
