// SPDX-License-Identifier: MIT
#include "stack/lines/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/xalloc.h"

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
