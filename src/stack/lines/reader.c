// SPDX-License-Identifier: MIT
#include "stack/lines/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rights.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "stack/lines/debug_info.h"

/* On the wire, each with its texts behind it. */
struct wire_head {
	uint32_t status, n;
};

struct wire_part {
	uint32_t line, first_line;
	uint32_t function_bytes, file_bytes; /* 0: NULL */
};

_Static_assert(sizeof(struct wire_head) + LINES_PARTS_MAX * (sizeof(struct wire_part) + 2 * 64) <
                       LINES_ANSWER_BYTES,
               "short names always fit");

/* ---- writing ------------------------------------------------------------------------------- */

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

static size_t fitting(const char *text, size_t room)
{
	size_t len = text ? strnlen(text, LINES_NAME_MAX + 1) : 0;

	return len <= LINES_NAME_MAX && len <= room ? len : 0;
}

static void add_text(struct buf *message, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_putc(message, is_control(text[i]) ? '?' : text[i]);
}

void lines_answer_write(const struct lines_answer *answer, struct buf *message)
{
	struct wire_head head = { answer->status, (uint32_t)answer->n };
	size_t left = LINES_ANSWER_BYTES - sizeof(head) - answer->n * sizeof(struct wire_part);

	buf_reset(message);
	buf_add(message, &head, sizeof(head));
	for (size_t i = 0; i < answer->n; i++) {
		const struct lines_part *part = &answer->parts[i];
		struct wire_part wire = { part->line, part->first_line, 0, 0 };

		wire.function_bytes = (uint32_t)fitting(part->function, left);
		left -= wire.function_bytes;
		wire.file_bytes = (uint32_t)fitting(part->file, left);
		left -= wire.file_bytes;
		buf_add(message, &wire, sizeof(wire));
		add_text(message, part->function, wire.function_bytes);
		add_text(message, part->file, wire.file_bytes);
	}
}

/* ---- reading ------------------------------------------------------------------------------- */

struct taking {
	const char *at;
	size_t left;
	struct buf *texts;
	bool bad;
};

static void take(struct taking *taking, void *to, size_t bytes)
{
	if (taking->bad || bytes > taking->left) {
		taking->bad = true;
		memset(to, 0, bytes);
		return;
	}
	memcpy(to, taking->at, bytes);
	taking->at += bytes;
	taking->left -= bytes;
}

/* Where it begins in the texts, and one; 0: there is none. */
static size_t take_text(struct taking *taking, uint32_t bytes)
{
	size_t begin = taking->texts->len + 1;

	if (!bytes)
		return 0;
	if (taking->bad || bytes > LINES_NAME_MAX || bytes > taking->left) {
		taking->bad = true;
		return 0;
	}
	for (uint32_t i = 0; i < bytes; i++)
		taking->bad |= is_control(taking->at[i]);
	buf_add(taking->texts, taking->at, bytes);
	buf_putc(taking->texts, '\0');
	taking->at += bytes;
	taking->left -= bytes;
	return begin;
}

bool lines_answer_read(const void *message, size_t bytes, struct lines_answer *answer,
                       struct buf *texts)
{
	struct taking taking = { message, bytes, texts, false };
	size_t function[LINES_PARTS_MAX], file[LINES_PARTS_MAX];
	struct wire_head head;
	struct wire_part wire;

	buf_reset(texts);
	take(&taking, &head, sizeof(head));
	if (taking.bad || head.status > LINES_REFUSED || head.n > LINES_PARTS_MAX)
		return false;
	answer->status = head.status;
	answer->n = head.n;
	for (size_t i = 0; i < head.n; i++) {
		take(&taking, &wire, sizeof(wire));
		taking.bad |= wire.line > INT32_MAX || wire.first_line > INT32_MAX;
		answer->parts[i] =
			(struct lines_part){ .line = wire.line, .first_line = wire.first_line };
		function[i] = take_text(&taking, wire.function_bytes);
		file[i] = take_text(&taking, wire.file_bytes);
	}
	if (taking.bad || taking.left)
		return false;
	for (size_t i = 0; i < head.n; i++) { /* the texts have moved while they grew */
		answer->parts[i].function = function[i] ? texts->data + function[i] - 1 : NULL;
		answer->parts[i].file = file[i] ? texts->data + file[i] - 1 : NULL;
	}
	return true;
}

/* ---- reader process ------------------------------------------------------------------------ */

/* The other side of reader.h: the process that reads. */

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

static void process_answer(int socket, const struct lines_answer *what)
{
	AT_END(buf_free) struct buf message = { 0 };

	lines_answer_write(what, &message);
	if (worker_send(socket, message.data, message.len, -1))
		_exit(0);
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
		process_answer(socket, &found);
		_exit(1);
	}
	if (!rc)
		info = debug_info_open(&files);
	found.status = info ? LINES_OK : LINES_NOTHING;
	process_answer(socket, &found);
	while (info && worker_receive(socket, &request, sizeof(request), &fd) == sizeof(request)) {
		debug_info_find(info, request.offset, request.what == LINES_FIND_NAMED, &found);
		process_answer(socket, &found);
	}
	_exit(0);
}

/* ---- reader -------------------------------------------------------------------------------- */

#define LEAVING_MS 200 /* one that waits for a file's server does not end by SIGKILL */

/* ---- beginning and end --------------------------------------------------------------------- */

static int fork_and_run(struct worker *worker, void (*run)(int socket))
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		run(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	*worker = (struct worker){ pid, (int)syscall(SYS_pidfd_open, pid, 0), pair[0] };
	return 0;
}

/* Nothing of cuscope's is handed on: its descriptors close, and the environment is empty. */
int reader_start(struct reader *reader, void (*run)(int socket))
{
	char name[] = READER_NAME, *argv[] = { name, NULL }, *environment[] = { NULL };
	const struct worker_program program = { .argv = argv,
		                                .environment = environment,
		                                .with = -1 };
	int rc = run ? fork_and_run(&reader->worker, run) : worker_start(&reader->worker, &program);

	if (!rc)
		reader->message = xmalloc(LINES_ANSWER_BYTES);
	return rc;
}

void reader_end(struct reader *reader)
{
	if (!reader->worker.pid)
		return;
	if (!worker_kill(&reader->worker, LEAVING_MS, NULL))
		close(reader->worker.pidfd);
	free(reader->message);
	buf_free(&reader->texts);
	*reader = (struct reader){ 0 };
}

/* ---- asking -------------------------------------------------------------------------------- */

int reader_send(struct reader *reader, enum lines_what what, uint32_t crc, int fd)
{
	const struct lines_request request = { .what = what, .crc = crc };

	return worker_send(reader->worker.socket, &request, sizeof(request), fd);
}

int reader_ask(struct reader *reader, enum lines_what what, uint64_t offset, unsigned ms,
               const bool *stop, struct lines_answer *answer)
{
	const struct lines_request request = { .what = what, .offset = offset };
	int rc = worker_send(reader->worker.socket, &request, sizeof(request), -1);
	ssize_t bytes;

	if (rc)
		return -EPIPE;
	rc = worker_wait(reader->worker.socket, ms, stop);
	if (rc)
		return rc;
	bytes = worker_receive(reader->worker.socket, reader->message, LINES_ANSWER_BYTES, NULL);
	if (bytes <= 0)
		return -EPIPE;
	return lines_answer_read(reader->message, (size_t)bytes, answer, &reader->texts) ? 0
	                                                                                 : -EBADMSG;
}
