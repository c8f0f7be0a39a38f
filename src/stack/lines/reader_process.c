// SPDX-License-Identifier: MIT
/* The other side of reader.h: the process that reads. */
#include "stack/lines/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rights.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"
#include "stack/lines/debug_info.h"

#define MEMORY_BYTES ((uint64_t)512 << 20) /* besides the files, which are mapped */
#define FILES_BYTES  ((uint64_t)16 << 30)
#define CPU_SECONDS  60

/* `bytes`: of the files, which it maps. */
static int give_up_rights(uint64_t bytes)
{
	int rc = rights_limit(RLIMIT_CPU, CPU_SECONDS);

	return rc ? rc : rights_give_up(bytes + MEMORY_BYTES);
}

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
	if (worker_send(socket, message.data, message.len, -1))
		_exit(0);
	buf_free(&message);
}

/* All that comes before LINES_READY; false: there will be nothing to do. */
static bool receive_files(int socket, struct debug_info_files *files, uint64_t *bytes)
{
	struct lines_request request;
	int fd;

	while (worker_receive(socket, &request, sizeof(request), &fd) == sizeof(request)) {
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
	worker_close_all_but(socket, -1); /* what was handed on by mistake is no use to it */
	rc = setpriority(PRIO_PROCESS, 0, 10);
	if (!receive_files(socket, &files, &bytes))
		rc = -ENOENT;
	found.status = give_up_rights(bytes) ? LINES_REFUSED : LINES_OK;
	if (found.status == LINES_REFUSED) {
		answer(socket, &found);
		_exit(1);
	}
	if (!rc)
		info = debug_info_open(&files);
	found.status = info ? LINES_OK : LINES_NOTHING;
	answer(socket, &found);
	while (info && worker_receive(socket, &request, sizeof(request), &fd) == sizeof(request)) {
		debug_info_find(info, request.offset, &found);
		answer(socket, &found);
	}
	_exit(0);
}
