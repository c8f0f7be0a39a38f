// SPDX-License-Identifier: MIT
/* The other side of plain_name.h: the process without rights that demangles. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/rights.h"
#include "cuda/kernel_name.h"
#include "probe/function_name.h"
#include "probe/helper_inside.h"
#include "probe/plain_name.h"

#define MEMORY_BYTES ((uint64_t)512 << 20) /* what it was forked from included */

static int answers; /* the socket that they go to */

/* In the midst of a name: nothing of what it was at is any use. */
static void say_late(int signal)
{
	static const struct names_answer none;
	ssize_t n = write(answers, &none, sizeof(none.ran_ns));

	_exit(n < 0);
}

/* 0: no more. Only while it runs, and not while it waits. */
static void set_time(unsigned ms)
{
	const struct itimerval time = { .it_value = { .tv_usec = (suseconds_t)ms * 1000 } };

	if (setitimer(ITIMER_PROF, &time, NULL))
		_exit(1);
}

static uint64_t ran_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Bytes of the answer. */
static size_t read_name(const struct names_request *request, struct names_answer *answer)
{
	uint64_t begin = ran_ns();
	char *plain;
	size_t len;

	set_time(PLAIN_NAME_MS);
	plain = request->kind == NAMES_OF_KERNEL ? kernel_name_demangle(request->name)
	                                         : function_name_demangle(request->name);
	set_time(0); /* what it says from here on is of this name, and one answer */
	len = strnlen(plain, NAMES_BYTES - 1);
	memcpy(answer->text, plain, len);
	free(plain);
	answer->ran_ns = ran_ns() - begin;
	return sizeof(answer->ran_ns) + len;
}

void names_main(int socket)
{
	static struct names_request request;
	static struct names_answer answer;
	int32_t pid = getpid();
	ssize_t bytes;
	int fd;

	answers = socket;
	signal(SIGPROF, say_late);
	prctl(PR_SET_NAME, "cuscope-names");
	if (rights_give_up(MEMORY_BYTES) || worker_send(socket, &pid, sizeof(pid), -1))
		_exit(1);
	while ((bytes = worker_receive(socket, &request, sizeof(request), &fd)) > 0) {
		size_t end = (size_t)bytes - sizeof(request.kind);

		request.name[end < NAMES_BYTES ? end : NAMES_BYTES - 1] = '\0';
		if (worker_send(socket, &answer, read_name(&request, &answer), -1))
			break;
	}
	_exit(0);
}
