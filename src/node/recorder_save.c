// SPDX-License-Identifier: MIT
#include "node/recorder_save.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/worker.h"
#include "trace/writer.h"

#define CHILD_SECONDS 120 /* a disk that takes longer is given up */
#define TELL_MS       5000

static void tell(const struct recorder_saver *saver, uint32_t why, const char *text,
                 const struct recorder_saved *saved)
{
	struct recorder_message message = { .kind = RECORDER_SAVED };
	struct pollfd room = { .fd = saver->socket, .events = POLLOUT };

	if (saved)
		message.saved = *saved;
	message.saved.ticket = saver->ticket;
	message.saved.why = why;
	snprintf(message.text, sizeof(message.text), "%s", text);
	while (recorder_send(saver->socket, &message) == -EAGAIN && poll(&room, 1, TELL_MS) > 0)
		;
}

/* ---- the child ----------------------------------------------------------------------------- */

/* What it writes, while it does. */
struct writing {
	struct spool_file file;
	struct recorder_saved saved;
	const struct recorder_settings *settings;
};

/* The writer closes a descriptor of its own. */
static int open_file(void *data, const char **name, struct err *err)
{
	struct writing *writing = data;
	int fd = fcntl(writing->file.fd, F_DUPFD_CLOEXEC, 0);

	*name = "the recording";
	return fd < 0 ? err_set(err, errno, "cannot write the recording: %s", strerror(errno)) : fd;
}

static void written(void *data, const struct run_info *run, uint64_t events, uint64_t bytes)
{
	struct writing *writing = data;

	writing->saved.events = events;
	writing->saved.bytes = bytes;
}

/* No more than the spool has room for, whatever the recording turns out to be. */
static void limit_file(uint64_t room)
{
	struct rlimit limit = { room, room };

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* "slow_step", or "slow_step_gpu" for what was measured after it. */
static int keep_file(const struct recorder_saver *saver, struct writing *writing,
                     const struct recorder_save *save, struct err *err)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s", rule_name(save->rule),
	         saver->settings->gpu_times ? "_gpu" : "");
	return spool_keep(&writing->file, name, time(NULL), writing->saved.name, err);
}

/* As clocks are now: the recorder runs for months, and a clock may have been set since. */
static int64_t realtime_offset_ns(void)
{
	struct timespec real, monotonic;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	return (real.tv_sec - monotonic.tv_sec) * 1000000000 + (real.tv_nsec - monotonic.tv_nsec);
}

static int write_file(struct recorder_saver *saver, struct writing *writing,
                      const struct recorder_save *save, const struct run_info *run,
                      enum spool_why *why, struct err *err)
{
	struct run_info told = *run;
	struct writer_stats stats;
	int rc;

	told.reason = save->reason;
	told.realtime_offset_ns = realtime_offset_ns();
	if (save->last_ns)
		writer_shorten(saver->writer, save->last_ns);
	writer_stats(saver->writer, &stats);
	rc = spool_begin(saver->spool, &saver->settings->spool,
	                 stats.held + stats.held / 16 + (1 << 20), &writing->file, why, err);
	if (rc)
		return rc;
	limit_file(writing->file.room);
	writer_redirect(saver->writer, open_file, written, writing);
	rc = writer_snapshot(saver->writer, &told, err);
	if (rc)
		spool_drop(&writing->file);
	else
		rc = keep_file(saver, writing, save, err);
	*why = spool_why_of(rc);
	return rc;
}

static void write_and_tell(struct recorder_saver *saver, const struct recorder_save *save,
                           const struct run_info *run)
{
	struct writing writing = { .settings = saver->settings };
	enum spool_why why = SPOOL_UNWRITABLE;
	struct err err = { 0 };

	prctl(PR_SET_NAME, "cuscope-save");
	/* Probes and maps are the recorder's: a child that hangs must not keep them. */
	worker_close_all_but(saver->socket, saver->spool);
	alarm(CHILD_SECONDS);
	if (!write_file(saver, &writing, save, run, &why, &err))
		why = SPOOL_OK;
	tell(saver, why, err.text, &writing.saved);
	_exit(0);
}

/* ---- the recorder -------------------------------------------------------------------------- */

void recorder_save(struct recorder_saver *saver, const struct recorder_save *save,
                   const struct run_info *run)
{
	if (saver->child) {
		struct recorder_saver other = *saver;

		other.ticket = save->ticket;
		tell(&other, RECORDER_BUSY, "another recording is still being written", NULL);
		return;
	}
	saver->ticket = save->ticket;
	saver->child = fork();
	if (!saver->child)
		write_and_tell(saver, save, run);
	if (saver->child > 0)
		return;
	saver->child = 0;
	tell(saver, RECORDER_CRASHED, strerror(errno), NULL);
}

void recorder_save_look(struct recorder_saver *saver)
{
	int status;

	if (!saver->child || waitpid(saver->child, &status, WNOHANG) != saver->child)
		return;
	saver->child = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		tell(saver, RECORDER_CRASHED, "who wrote the recording was ended", NULL);
}
