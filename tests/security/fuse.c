// SPDX-License-Identifier: MIT
/*
 * A file system of one file that answers everybody but cuscope:
 *
 *   fuse FOLDER FILE SECONDS         serves FILE as FOLDER/file for so long, and prints "ready"
 *   fuse FOLDER FILE SECONDS UID     answers cuscope as well, but is mounted as that user
 *   fuse FOLDER FILE SECONDS UID MS  answers it so late each time; -1: never where it looks for
 *                                    CUDA libraries, and at once otherwise (it may be its loader);
 *                                    -2: answers everybody, but who closes the file
 *                                    -3: answers everybody, but who writes
 *
 * Whoever asks for something that is not answered waits in the kernel until this ends, and no
 * signal helps. Speaks the kernel's protocol itself, so that nothing has to be installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_NODE 2
#define MOST      131072

#define LATE_LIBRARIES (-1)
#define LATE_CLOSING   (-2)
#define LATE_WRITING   (-3)

struct server {
	int device;
	char *content;
	uint64_t size;
	bool never;   /* there is no answer for cuscope */
	long late_ms; /* or such a one; LATE_LIBRARIES, LATE_CLOSING, LATE_WRITING */
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void answer(const struct server *server, const struct fuse_in_header *in, int error,
                   const void *data, size_t bytes)
{
	static char reply[sizeof(struct fuse_out_header) + MOST];
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + bytes),
		                        .error = -error,
		                        .unique = in->unique };

	memcpy(reply, &head, sizeof(head));
	if (bytes)
		memcpy(reply + sizeof(head), data, bytes);
	if (write(server->device, reply, head.len) < 0 && errno != ENOENT)
		perror("fuse: answer");
}

static struct fuse_attr attributes(const struct server *server, uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096 };

	attr.mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755;
	attr.size = node == FILE_NODE ? server->size : 0;
	return attr;
}

static bool is_cuscope(uint32_t pid)
{
	char path[64], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(comm, sizeof(comm), file))
		comm[0] = '\0';
	fclose(file);
	return !strncmp(comm, "cuscope", 7);
}

static void on_read(const struct server *server, const struct fuse_in_header *in)
{
	const struct fuse_read_in *read_in = (const void *)(in + 1);
	uint64_t bytes = read_in->size < MOST ? read_in->size : MOST;

	if (read_in->offset >= server->size)
		bytes = 0;
	else if (bytes > server->size - read_in->offset)
		bytes = server->size - read_in->offset;
	answer(server, in, 0, server->content + (bytes ? read_in->offset : 0), bytes);
}

static void on_lookup(const struct server *server, const struct fuse_in_header *in)
{
	struct fuse_entry_out entry = { .nodeid = FILE_NODE, .entry_valid = 3600 };

	entry.attr = attributes(server, FILE_NODE);
	if (strcmp((const char *)(in + 1), "file"))
		answer(server, in, ENOENT, NULL, 0);
	else
		answer(server, in, 0, &entry, sizeof(entry));
}

static bool leaves_waiting(const struct server *server, const struct fuse_in_header *in)
{
	bool looks = in->opcode == FUSE_OPENDIR || in->opcode == FUSE_READDIR ||
	             (in->opcode == FUSE_LOOKUP && !strncmp((const char *)(in + 1), "libcud", 6));
	bool never = server->never || (server->late_ms == LATE_LIBRARIES && looks);

	if (never || server->late_ms > 0)
		fprintf(stderr, "%s answer to process %u, operation %u\n", never ? "no" : "late",
		        in->pid, in->opcode);
	if (!never && server->late_ms > 0)
		usleep((unsigned)server->late_ms * 1000);
	return never;
}

static void serve(const struct server *server, const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
		                      .minor = FUSE_KERNEL_MINOR_VERSION,
		                      .max_readahead = 0,
		                      .max_write = 4096 };
	struct fuse_attr_out attr = { .attr = attributes(server, in->nodeid) };
	struct fuse_open_out open_out = { .fh = 1 };
	struct fuse_statfs_out statfs_out = { .st = { .bsize = 4096 } };

	if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
	    in->opcode == FUSE_INTERRUPT)
		return; /* these want no answer */
	if (in->opcode == FUSE_FLUSH && server->late_ms == LATE_CLOSING)
		return;
	if (in->opcode == FUSE_WRITE && server->late_ms == LATE_WRITING)
		return;
	if (in->opcode != FUSE_INIT && is_cuscope(in->pid) && leaves_waiting(server, in))
		return;
	switch (in->opcode) {
	case FUSE_INIT:
		answer(server, in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		on_lookup(server, in);
		break;
	case FUSE_GETATTR: /* valid for no time: it is asked for again and again */
		answer(server, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(server, in, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_READ:
		on_read(server, in);
		break;
	case FUSE_STATFS:
		answer(server, in, 0, &statfs_out, sizeof(statfs_out));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(server, in, 0, NULL, 0);
		break;
	default:
		answer(server, in, ENOSYS, NULL, 0);
	}
}

static void load(struct server *server, const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file || fseek(file, 0, SEEK_END))
		fail(path);
	server->size = (uint64_t)ftell(file);
	rewind(file);
	server->content = malloc(server->size + 1);
	if (fread(server->content, 1, server->size, file) != server->size)
		fail(path);
	fclose(file);
}

int main(int argc, char **argv)
{
	static char request[MOST + 4096] __attribute__((aligned(8)));
	struct server server;
	char options[128];
	time_t end;

	if (argc < 4 || argc > 6)
		return 2;
	end = time(NULL) + atoi(argv[3]);
	load(&server, argv[2]);
	server.device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (server.device < 0)
		fail("/dev/fuse");
	server.never = argc == 4;
	server.late_ms = argc == 6 ? atol(argv[5]) : 0;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%s,group_id=0,allow_other",
	         server.device, argc >= 5 ? argv[4] : "0");
	if (mount("user_id=0,", argv[1], "fuse", MS_NOSUID | MS_NODEV, options))
		fail("mount");
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end) {
		struct pollfd poll_fd = { .fd = server.device, .events = POLLIN };
		ssize_t n;

		if (poll(&poll_fd, 1, 200) <= 0)
			continue;
		n = read(server.device, request, sizeof(request));
		if (n < 0 && errno == ENODEV)
			break; /* unmounted */
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			serve(&server, (const struct fuse_in_header *)request);
	}
	umount2(argv[1], MNT_DETACH);
	return 0; /* what waits is let go with an error */
}
