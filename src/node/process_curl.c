// SPDX-License-Identifier: MIT
#include "node/process_curl.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/worker.h"
#include "probe/mounts.h"

#define CPU_SECONDS 10
#define LOOK_MS     50
#define LEAVING_MS  200
#define PIECE       65536

const char *process_curl_word(enum process_curl_outcome outcome)
{
	static const char *const words[] = {
#define X(name, word) [PROCESS_CURL_##name] = word,
		PROCESS_CURL_OUTCOMES(X)
#undef X
	};

	return words[outcome];
}

/* ---- what curl is told --------------------------------------------------------------------- */

static bool is_made_of(const char *text, const char *more)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	for (; *text; text++)
		if (!strchr(letters, *text) && !strchr(more, *text))
			return false;
	return true;
}

bool process_curl_is_url(const char *text)
{
	return !strncmp(text, "https://", 8) && text[8] && is_made_of(text, ":/.-_[]?=&%~");
}

bool process_curl_is_token(const char *text)
{
	return *text && strlen(text) < 8192 && is_made_of(text, ".-_~+/=");
}

static int memory_with(const char *data, size_t bytes)
{
	int fd = memfd_create("cuscope", MFD_CLOEXEC);

	if (fd >= 0 && (write(fd, data, bytes) != (ssize_t)bytes || lseek(fd, 0, SEEK_SET))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int configuration(const char *url, const char *token)
{
	AT_END(buf_free) struct buf text = { 0 };
	int fd;

	buf_printf(&text, "url = \"%s\"\nheader = \"Authorization: Bearer %s\"\n", url, token);
	fd = memory_with(text.data, text.len);
	explicit_bzero(text.data, text.len);
	return fd;
}

/* ---- its answer ---------------------------------------------------------------------------- */

/* Up to its end: 0, or what went wrong. */
static enum process_curl_outcome read_answer(int fd, struct buf *answer, const bool *stop)
{
	uint64_t until = clock_now_ms() + PROCESS_CURL_MS;
	struct pollfd one = { .fd = fd, .events = POLLIN };

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED) && clock_now_ms() < until) {
		ssize_t n;

		if (poll(&one, 1, LOOK_MS) <= 0)
			continue;
		buf_reserve(answer, PIECE);
		n = read(fd, answer->data + answer->len, PIECE);
		if (n <= 0)
			return n ? PROCESS_CURL_FAILED : PROCESS_CURL_READ;
		answer->len += (size_t)n;
		answer->data[answer->len] = '\0';
		if (answer->len > PROCESS_CURL_MOST)
			return PROCESS_CURL_TOO_LONG;
	}
	return PROCESS_CURL_UNREACHABLE;
}

/* As curl(1) has its exit codes. */
static enum process_curl_outcome outcome_of(int status)
{
	switch (status) {
	case 0:
		return PROCESS_CURL_READ;
	case 6: /* no such host */
	case 7: /* nobody listens */
	case 28:
		return PROCESS_CURL_UNREACHABLE;
	case 22:
		return PROCESS_CURL_DENIED;
	case 35:
	case 60:
	case 77:
		return PROCESS_CURL_UNTRUSTED;
	case 63:
		return PROCESS_CURL_TOO_LONG;
	}
	return PROCESS_CURL_FAILED;
}

/* 0: what it is told, 1: the answer, 2: nothing, 3: certificates. */
static enum process_curl_outcome fetch(int program, const int fds[4], int in, struct buf *answer,
                                       const bool *stop)
{
	static char *const argv[] = { "curl",
		                      "-q",
		                      "--silent",
		                      "--fail",
		                      "--max-time",
		                      "6",
		                      "--connect-timeout",
		                      "3",
		                      "--max-filesize",
		                      "16777216",
		                      "--proto",
		                      "=https",
		                      "--max-redirs",
		                      "0",
		                      "--noproxy",
		                      "*",
		                      "--cacert",
		                      "/proc/self/fd/3",
		                      "-K",
		                      "-",
		                      NULL };
	static char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
	const struct worker_command command = { .program = program,
		                                .argv = argv,
		                                .environment = environment,
		                                .fds = { fds[0], fds[1], fds[2], fds[3] },
		                                .cpu_s = CPU_SECONDS };
	enum process_curl_outcome outcome;
	struct worker worker;
	siginfo_t info;
	int rc = worker_run(&worker, &command);

	close(fds[1]);
	if (rc)
		return PROCESS_CURL_FAILED;
	outcome = read_answer(in, answer, stop);
	if (outcome == PROCESS_CURL_READ && worker_ended(&worker, PROCESS_CURL_MS, &info))
		return outcome_of(info.si_pid && info.si_code == CLD_EXITED ? info.si_status : -1);
	if (!worker_kill(&worker, LEAVING_MS, NULL))
		close(worker.pidfd);
	return outcome == PROCESS_CURL_READ ? PROCESS_CURL_FAILED : outcome;
}

enum process_curl_outcome process_curl(const char *url, const char *token,
                                       const struct buf *authority, struct buf *answer,
                                       const bool *stop)
{
	enum process_curl_outcome outcome = PROCESS_CURL_FAILED;
	int program = roots_path_open("/usr/bin/curl"), both[2], fds[4] = { -1, -1, -1, -1 };

	if (program < 0)
		return PROCESS_CURL_NO_CURL;
	fds[0] = configuration(url, token);
	fds[3] = memory_with(authority->data, authority->len);
	if (fds[0] >= 0 && fds[3] >= 0 && !pipe2(both, O_CLOEXEC)) {
		fds[1] = both[1];
		outcome = fetch(program, fds, both[0], answer, stop);
		close(both[0]);
	}
	close(program);
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[3] >= 0)
		close(fds[3]);
	return outcome;
}
