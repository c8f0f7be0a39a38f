// SPDX-License-Identifier: MIT
#include "cli/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/missed.h"
#include "analysis/work.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"

#define PROGRESS_NS 500000000ull

/* ---- what is said -------------------------------------------------------------------------- */

static void clear_progress(struct recording *r)
{
	if (r->shown)
		fputs("\r\033[K", stderr);
	r->shown = false;
}

void recording_notice(void *data, const char *text)
{
	clear_progress(data);
	cli_say("%s", text);
}

/* "123456 events  1.02 MiB  0 lost  overhead 1.2 %", over and over in the same line. */
static void show_progress(void *data, const struct capture_state *state)
{
	struct recording *r = data;
	struct writer_stats stats;
	struct winsize size;
	AT_END(buf_free) struct buf line = { 0 };

	if (clock_now_ns() - r->shown_ns < PROGRESS_NS || ioctl(STDERR_FILENO, TIOCGWINSZ, &size))
		return;
	r->shown_ns = clock_now_ns();
	r->shown = true;
	writer_stats(r->writer, &stats);
	buf_printf(&line, "recording: %lu events  ", stats.events);
	buf_bytes(&line, stats.bytes);
	buf_printf(&line, "%s  %lu lost  overhead %.1f %%", r->held ? " held" : "",
	           missed_events(state->lost), state->overhead_percent);
	fprintf(stderr, "\r%.*s\033[K", size.ws_col > 1 ? size.ws_col - 1 : 80, line.data);
}

void recording_say_written(struct recording *r, const char *name, uint64_t events, uint64_t bytes,
                           const struct buf *missed)
{
	AT_END(buf_free) struct buf text = { 0 };

	clear_progress(r);
	buf_printf(&text, "%s: %lu events in ", name, events);
	buf_bytes(&text, bytes);
	if (events >= 1000) /* else it is definitions rather than events */
		buf_printf(&text, " (%.1f bytes an event)", (double)bytes / (double)events);
	if (missed && missed->len)
		buf_printf(&text, ", %s ('cuscope info %s' says why)", missed->data, name);
	else if (missed)
		buf_puts(&text, ", none lost");
	cli_say("%s; next: cuscope report %s", text.data, name);
}

/* ---- recording ----------------------------------------------------------------------------- */

/* A trace is read in several places at once, so it has to be a file. */
int recording_open(struct recording *r, const char *path, bool force, mode_t mode, struct err *err)
{
	const struct new_file_options wanted = {
		.replace = force, .grows = true, .regular = true, .mode = mode
	};
	int rc = new_file_open(&r->file, path, &wanted, err);

	if (rc == -EINVAL)
		return err_set(err, EINVAL,
		               "cannot record to %s: it is not a regular file ('cuscope trace' "
		               "writes to pipes)",
		               path);
	return rc;
}

static bool has_worked(void *data)
{
	return ((const struct recording *)data)->worked;
}

static bool enough(void *data)
{
	return chosen_enough(((const struct recording *)data)->chosen);
}

int recording_capture(struct recording *r, struct consumer **consumers, size_t count,
                      struct err *err)
{
	struct capture_options *capture = &r->attach->capture;

	capture->target = r->attach->choice.target;
	r->attach->selection.failed = r->chosen_options.failed;
	capture->selection = r->attach->selection;
	capture->chosen = r->chosen_words;
	capture->stacks = cli_stacks_settle(r->stacks);
	cli_metrics_settle(r->metrics, true, capture);
	capture->who = true;
	capture->enough = enough;
	capture->begun = r->from_work ? has_worked : NULL;
	capture->consumers = consumers;
	capture->n_consumers = count;
	capture->notice = recording_notice;
	capture->progress = isatty(STDERR_FILENO) ? show_progress : NULL;
	capture->data = r;
	return cli_capture(capture, err);
}

static struct recording *recording_of(struct consumer *closing)
{
	return (struct recording *)((char *)closing - offsetof(struct recording, closing));
}

static int closing_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct recording *r = recording_of(self);

	r->worked = r->worked || event->type == EVENT_ACTIVITY ||
	            (event->type == EVENT_CALL && call_asks_for_work(event->call));
	return 0;
}

static int closing_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	missed_brief(&recording_of(self)->missed, run);
	return 0;
}

static const struct consumer_ops closing_ops = { .event = closing_event, .end = closing_end };

/* Once, when all is written. */
static void settle(void *data)
{
	struct recording *r = data;
	struct writer_stats stats;
	int fd = -1;
	bool began;

	if (r->settled)
		return;
	r->settled = true;
	writer_stats(r->writer, &stats);
	began = stats.events || stats.ended;
	if (began && r->over)
		fd = fcntl(fileno(r->file.out), F_DUPFD_CLOEXEC, 0);
	if (!began)
		new_file_drop(&r->file);
	cli_settle(&r->file, true, &r->failure);
	if (began && !r->unnamed)
		recording_say_written(r, r->path, stats.whole, stats.bytes,
		                      stats.ended && !r->failure.code ? &r->missed : NULL);
	clear_progress(r);
	if (r->over)
		r->over(r, fd);
}

int recording_take(struct recording *r, const char *path, struct err *err)
{
	struct consumer *consumers[3] = { cli_placer(&r->file) };
	int status;

	r->path = path;
	r->writer = writer_new(fileno(r->file.out), path);
	consumers[1] = r->chosen = chosen_new(r->writer, &r->chosen_options);
	consumers[2] = &r->closing;
	r->closing.ops = &closing_ops;
	r->attach->capture.unhooked = r->over ? settle : NULL;
	status = recording_capture(r, consumers, 3, err);
	settle(r);
	r->chosen->ops->free(r->chosen);
	r->writer->ops->free(r->writer);
	consumers[0]->ops->free(consumers[0]);
	buf_free(&r->missed);
	if (!r->failure.code || status)
		return status;
	*err = r->failure;
	return EXIT_FAILURE;
}

/* What the commands that trace have in common: the run. */

/* ---- the run ------------------------------------------------------------------------------- */

/* Until the capture waits for them, they would end cuscope. */
static void hold_back_user_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void join(struct buf *out, char *const *words)
{
	for (size_t i = 0; words[i]; i++) {
		buf_puts(out, i ? " " : "");
		buf_puts(out, words[i]);
	}
}

char *cli_target_text(const struct target *target)
{
	struct buf text = { 0 };

	switch (target->kind) {
	case TARGET_COMMAND:
		join(&text, target->command.argv);
		break;
	case TARGET_PIDS:
		buf_puts(&text, target->n_pids == 1 ? "process" : "processes");
		for (size_t i = 0; i < target->n_pids; i++)
			buf_printf(&text, " %d", target->pids[i]);
		break;
	case TARGET_NAME:
		buf_printf(&text, "processes named %s", target->glob);
		break;
	case TARGET_CGROUP:
		buf_printf(&text, "cgroup %s", target->cgroup);
		break;
	case TARGET_ALL:
		buf_puts(&text, "all processes");
		break;
	}
	return text.data;
}

int cli_capture_run(struct capture *capture, struct err *err)
{
	int r = capture_run(capture, err), status;

	if (r)
		cli_say("%s", err->text);
	err->text[0] = '\0';
	status = capture_finish(capture);
	capture_free(capture);
	return r && !status ? EXIT_FAILURE : status;
}

int cli_capture(struct capture_options *options, struct err *err)
{
	struct capture *capture = NULL;
	int r;

	hold_back_user_signals();
	if (!options->notice)
		options->notice = cli_notice;
	r = capture_open(options, &capture, err);
	if (r)
		return EXIT_FAILURE;
	return cli_capture_run(capture, err);
}
