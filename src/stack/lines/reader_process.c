// SPDX-License-Identifier: MIT
/* The other side of reader.h: the process that reads, and how it loses its rights. */
#include "stack/lines/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"
#include "stack/lines/debug_info.h"
#include "stack/lines/rights.h"

#define MEMORY_BYTES ((uint64_t)512 << 20) /* besides the files, which are mapped */
#define FILES_BYTES  ((uint64_t)16 << 30)
#define CPU_SECONDS  60
#define DESCRIPTORS  16

/* ---- giving up rights ---------------------------------------------------------------------- */

static int limit_resources(uint64_t bytes)
{
	int rc = rights_limit(RLIMIT_CPU, CPU_SECONDS);

#ifndef __SANITIZE_ADDRESS__ /* which has terabytes of address space */
	rc = rc ? rc : rights_limit(RLIMIT_AS, bytes + MEMORY_BYTES);
#endif
	rc = rc ? rc : rights_limit(RLIMIT_FSIZE, 0);
	rc = rc ? rc : rights_limit(RLIMIT_CORE, 0);
	rc = rc ? rc : rights_limit(RLIMIT_NPROC, 0);
	return rc ? rc : rights_limit(RLIMIT_NOFILE, DESCRIPTORS);
}

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                    \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Memory, but none that is run. The third argument has the protection. */
#define ALLOW_DATA(name)                                                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 4),                                    \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),        \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),                             \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                                      \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

#ifndef __SANITIZE_ADDRESS__ /* which asks for more */
#ifdef __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE AUDIT_ARCH_X86_64
#endif

static const struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(write),
	ALLOW(lseek),
	ALLOW(fstat),
	ALLOW(newfstatat), /* what fstat is in glibc */
	ALLOW(fcntl),
	ALLOW(close),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(brk),
	ALLOW(futex),
	ALLOW(getrandom),
	ALLOW(sysinfo), /* qsort of glibc asks how much memory there is */
	ALLOW(clock_gettime),
	ALLOW(exit),
	ALLOW(exit_group),
	ALLOW_DATA(mmap),
	ALLOW_DATA(mprotect),
	/* Libraries ask for more than they need: for other files, say. */
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
};

static int filter_calls(void)
{
	const struct sock_fprog program = { ARRAY_SIZE(filter), (struct sock_filter *)filter };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}
#else
static int filter_calls(void)
{
	return 0;
}
#endif

int reader_give_up_rights(uint64_t bytes)
{
	int rc = limit_resources(bytes);

	rc = rc ? rc : rights_become(RIGHTS_NOBODY, RIGHTS_NOBODY);
	rc = rc ? rc : rights_close();
	return rc ? rc : filter_calls();
}

/* ---- the process --------------------------------------------------------------------------- */

/*
 * A file that somebody serves comes as a descriptor of its path: it is opened here, where nobody
 * waits without a limit. A size that its server would be asked for is not: it is what is known.
 */
static int open_file(int fd, uint64_t *bytes)
{
	char self[64];
	struct stat st;
	int file = -1;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (!file_stat(fd, &st) && S_ISREG(st.st_mode)) /* opening a device can do things */
		file = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	close(fd);
	if (file < 0 || fstat(file, &st) || !S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size > FILES_BYTES - *bytes) {
		if (file >= 0)
			close(file);
		return -1;
	}
	*bytes += (uint64_t)st.st_size;
	return file;
}

static void take_file(int *to, int fd, uint64_t *bytes)
{
	if (*to >= 0)
		close(*to);
	*to = fd >= 0 ? open_file(fd, bytes) : -1;
}

static void answer(int socket, const struct lines_answer *what)
{
	struct buf message = { 0 };

	lines_answer_write(what, &message);
	if (helper_send(socket, message.data, message.len, -1))
		_exit(0);
	buf_free(&message);
}

/* All that comes before LINES_READY; false: there will be nothing to do. */
static bool receive_files(int socket, struct debug_info_files *files, uint64_t *bytes)
{
	struct lines_request request;
	int fd;

	while (helper_receive(socket, &request, sizeof(request), &fd) == sizeof(request)) {
		if (request.what == LINES_READY)
			return files->main >= 0;
		if (request.what == LINES_MAIN)
			take_file(&files->main, fd, bytes);
		else if (request.what == LINES_DEBUG)
			take_file(&files->debug, fd, bytes);
		else if (request.what == LINES_ALT)
			take_file(&files->alt, fd, bytes);
		if (request.what == LINES_DEBUG)
			files->crc = request.crc;
	}
	_exit(0);
}

/* What was handed on by mistake is no use to it. */
static void close_all_but(int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		if (null >= 0 && fd != socket)
			dup2(null, fd);
	for (int fd = 3; fd < 1024; fd++)
		if (fd != socket)
			close(fd);
	syscall(SYS_close_range, 1024, ~0u, 0);
}

void reader_main(int socket)
{
	static struct lines_answer found; /* 2 KiB, and answers of all kinds */
	struct debug_info_files files = { -1, -1, -1, 0 };
	struct debug_info *info = NULL;
	struct lines_request request;
	uint64_t bytes = 0;
	int fd, rc;

	prctl(PR_SET_NAME, READER_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* of the thread that asks */
	close_all_but(socket);
	rc = setpriority(PRIO_PROCESS, 0, 10);
	if (!receive_files(socket, &files, &bytes))
		rc = -ENOENT;
	found.status = reader_give_up_rights(bytes) ? LINES_REFUSED : LINES_OK;
	if (found.status == LINES_REFUSED) {
		answer(socket, &found);
		_exit(1);
	}
	if (!rc)
		info = debug_info_open(&files);
	found.status = info ? LINES_OK : LINES_NOTHING;
	answer(socket, &found);
	while (info && helper_receive(socket, &request, sizeof(request), &fd) == sizeof(request)) {
		debug_info_find(info, request.offset, &found);
		answer(socket, &found);
	}
	_exit(0);
}
