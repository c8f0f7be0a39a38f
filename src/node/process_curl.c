// SPDX-License-Identifier: MIT
#include "node/process_curl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rights.h"
#include "probe/roots_path.h"

#define HIGH_FD     16 /* from where on the process has what it needs meanwhile */
#define CPU_SECONDS 10
#define DESCRIPTORS 64
#define LOOK_MS     50
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
	struct buf text = { 0 };
	int fd;

	buf_printf(&text, "url = \"%s\"\nheader = \"Authorization: Bearer %s\"\n", url, token);
	fd = memory_with(text.data, text.len);
	explicit_bzero(text.data, text.len);
	buf_free(&text);
	return fd;
}

/* ---- the process: between fork and exec, with nothing but system calls --------------------- */

struct process_curl_files {
	int program, configuration, authority, out;
};

static int give_up_rights(void)
{
	int rc = rights_limit(RLIMIT_CPU, CPU_SECONDS);

	rc = rc ? rc : rights_limit(RLIMIT_FSIZE, 0);
	rc = rc ? rc : rights_limit(RLIMIT_CORE, 0);
	rc = rc ? rc : rights_limit(RLIMIT_NOFILE, DESCRIPTORS);
	rc = rc ? rc : rights_become_unseen();
	return rc ? rc : rights_close();
}

/* 0: what it is told, 1: the answer, 2: nothing, 3: certificates; and the program. */
static int take_descriptors(const struct process_curl_files *files)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int from[] = { files->configuration, files->out, null, files->authority };
	int high[4], program = fcntl(files->program, F_DUPFD_CLOEXEC, HIGH_FD);

	for (int fd = 0; fd < 4; fd++)
		high[fd] = fcntl(from[fd], F_DUPFD_CLOEXEC, HIGH_FD);
	for (int fd = 0; fd < 4; fd++)
		if (high[fd] < 0 || dup2(high[fd], fd) < 0)
			return -1;
	for (int fd = 4; fd < 1024; fd++)
		if (fd != program)
			close(fd);
	syscall(SYS_close_range, program < 1024 ? 1024 : program + 1, ~0u, 0);
	return program;
}

__attribute__((noreturn)) static void run(const struct process_curl_files *files)
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
	int program = take_descriptors(files);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (program < 0 || chdir("/") || give_up_rights())
		_exit(126);
	syscall(SYS_execveat, program, "", argv, environment, AT_EMPTY_PATH);
	_exit(126);
}

/* ---- its answer ---------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Up to its end: 0, or what went wrong. */
static enum process_curl_outcome read_answer(int fd, struct buf *answer, const bool *stop)
{
	uint64_t until = now_ms() + PROCESS_CURL_MS;
	struct pollfd one = { .fd = fd, .events = POLLIN };

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED) && now_ms() < until) {
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

/* By its pidfd: another thread that waits for all children may have been told of its end. */
static enum process_curl_outcome end_of(pid_t pid, enum process_curl_outcome outcome)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	siginfo_t info = { 0 };

	if (pidfd < 0)
		return PROCESS_CURL_FAILED;
	if (outcome != PROCESS_CURL_READ)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) || info.si_code != CLD_EXITED)
		info.si_status = -1;
	close(pidfd);
	return outcome == PROCESS_CURL_READ ? outcome_of(info.si_status) : outcome;
}

static enum process_curl_outcome fetch(const struct process_curl_files *files, int in,
                                       struct buf *answer, const bool *stop)
{
	pid_t pid = fork();

	if (pid == 0)
		run(files);
	close(files->out);
	if (pid < 0)
		return PROCESS_CURL_FAILED;
	return end_of(pid, read_answer(in, answer, stop));
}

enum process_curl_outcome process_curl(const char *url, const char *token,
                                       const struct buf *authority, struct buf *answer,
                                       const bool *stop)
{
	struct process_curl_files files = { .program = roots_path_open("/usr/bin/curl") };
	enum process_curl_outcome outcome = PROCESS_CURL_FAILED;
	int both[2] = { -1, -1 };

	if (files.program < 0)
		return PROCESS_CURL_NO_CURL;
	files.configuration = configuration(url, token);
	files.authority = memory_with(authority->data, authority->len);
	if (files.configuration >= 0 && files.authority >= 0 && !pipe2(both, O_CLOEXEC)) {
		files.out = both[1];
		outcome = fetch(&files, both[0], answer, stop);
		close(both[0]);
	}
	close(files.program);
	if (files.configuration >= 0)
		close(files.configuration);
	if (files.authority >= 0)
		close(files.authority);
	return outcome;
}
