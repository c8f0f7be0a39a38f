// SPDX-License-Identifier: MIT
#include "top/top_screen.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "analysis/missed.h"
#include "base/clock.h"
#include "base/lines.h"
#include "base/xalloc.h"
#include "capture/who_feed.h"
#include "top/terminal.h"
#include "top/top.h"
#include "top/top_why.h"

#define NOTICE_NS       15000000000ull /* how long one is shown */
#define NOTICES_MAX     16             /* that are said again after the screen is gone */
#define DETAILS_MAX     64             /* processes, whose details are shown by others at once */
#define GPU_PATIENCE_NS 5000000000ull  /* for the one page of --once */
#define SHOWN_BYTES     (250u << 10)   /* of a page that others show */

struct notices {
	char *text[NOTICES_MAX];
	size_t n;
	uint64_t time_ns; /* of the last one */
};

struct top_screen {
	struct consumer consumer; /* first */
	struct top_screen_options options;
	struct top_counts *counts;
	struct capture *capture;
	struct top_why *why;     /* NULL: not asked for */
	uint64_t account_number; /* that was shown */
	struct gpus *gpus;
	struct gpus_sample sample;
	struct who_feed *who; /* NULL: no process yet, or it cannot be read */
	struct run_info who_run;
	bool who_tried;
	bool any_sample;
	bool open;   /* the terminal is ours, or somebody else shows pages */
	bool wanted; /* by whoever else shows them */
	const struct run_info *run;
	bool quit, redraw;
	uint64_t tick_ns;          /* when the next page is due */
	uint64_t own_ns, clock_ns; /* CPU time used when last looked, and when that was */
	double own_percent;
	struct notices notices;
	struct top_snapshot snapshot;
	struct top_view view;
	struct top_page page;
	struct screen screen;
};

/* ---- notices ------------------------------------------------------------------------------- */

void top_screen_notice(void *data, const char *text)
{
	struct top_screen *s = data;
	struct notices *notices = &s->notices;

	if (s->options.once || (!s->open && s->capture)) { /* after the screen */
		s->options.say("%s", text);
		return;
	}
	if (notices->n == NOTICES_MAX) {
		free(notices->text[0]);
		memmove(notices->text, notices->text + 1,
		        (NOTICES_MAX - 1) * sizeof(*notices->text));
		notices->n--;
	}
	notices->text[notices->n++] = xstrdup(text);
	notices->time_ns = clock_now_ns();
	s->redraw = true;
}

static void say_notices(struct top_screen *s)
{
	struct notices *notices = &s->notices;

	for (size_t i = 0; i < notices->n; i++) {
		s->options.say("%s", notices->text[i]);
		free(notices->text[i]);
	}
	notices->n = 0;
}

/* ---- pages --------------------------------------------------------------------------------- */

static void measure_own_cost(struct top_screen *s)
{
	uint64_t own = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) + top_why_cpu_ns(s->why);
	uint64_t now = clock_now_ns();

	if (s->clock_ns && now > s->clock_ns)
		s->own_percent = 100.0 * (double)(own - s->own_ns) / (double)(now - s->clock_ns);
	s->own_ns = own;
	s->clock_ns = now;
}

static void take_snapshot(struct top_screen *s)
{
	bool opened = top_is_detail(s->view.table);
	bool all = s->view.paused || s->options.once ||
	           (s->wanted && s->snapshot.n_processes <= DETAILS_MAX);

	top_counts_keep(s->counts, opened ? &s->view.process : NULL);
	top_snapshot_free(&s->snapshot);
	top_counts_snapshot(s->counts, all, &s->snapshot);
}

static void fill_page(struct top_screen *s)
{
	struct capture_state state = { 0 };
	struct top_why_shown shown = { 0 };

	if (s->who)
		who_feed_fill(s->who, &s->who_run);
	if (s->why)
		shown = top_why_shown(s->why);
	capture_state(s->capture, &state);
	s->page = (struct top_page){
		.snapshot = &s->snapshot,
		.gpus = s->any_sample ? &s->sample : NULL,
		.who = s->who ? &s->who_run : NULL,
		.target = s->options.target,
		.hooks = s->options.hooks,
		.overhead_percent = state.overhead_percent,
		.own_percent = s->own_percent,
		.estimate_scale = state.estimate_scale,
		.account = shown.line,
		.account_pid = shown.pid,
	};
	memcpy(s->page.lost, state.lost, sizeof(s->page.lost));
	if (s->notices.n && clock_now_ns() - s->notices.time_ns < NOTICE_NS)
		s->page.notice = s->notices.text[s->notices.n - 1];
}

/* For whoever shows it: of what was missed what is known so far. */
static void show(struct top_screen *s)
{
	struct run_info run = *s->run;
	AT_END(buf_free) struct buf text = { 0 };

	memcpy(run.lost, s->page.lost, sizeof(run.lost));
	top_json(&s->page, &run, SHOWN_BYTES, &text);
	s->options.show(s->options.data, text.data);
}

static void draw(struct top_screen *s)
{
	size_t rows, columns;

	s->redraw = false;
	if (s->options.show && !s->wanted) {
		s->options.show(s->options.data, NULL);
		return;
	}
	fill_page(s);
	if (s->options.show) {
		show(s);
		return;
	}
	terminal_size(&rows, &columns);
	top_render(&s->page, &s->view, rows, columns, &s->screen);
	terminal_show(&s->screen);
}

/* A process whose end was lost in a full ring makes no calls and is not there. */
static void end_vanished(struct top_screen *s, uint64_t now)
{
	for (size_t i = 0; i < s->snapshot.n_processes; i++) {
		const struct top_process *process = &s->snapshot.processes[i];

		if (!process->ended && process->numbers[TOP_COUNT_CALLS].rate <= 0 &&
		    kill((pid_t)process->process->pid, 0) && errno == ESRCH)
			top_counts_end(s->counts, process->process->id, now);
	}
}

static void count_open_call(void *data, const struct capture_open_call *call)
{
	struct top_screen *s = data;

	top_counts_open_call(s->counts, call->pid, call->tid, call->function, call->begin_ns,
	                     clock_now_ns());
}

static void count_more(void *data, uint32_t pid, const struct function *function, uint64_t calls)
{
	struct top_screen *s = data;

	top_counts_counted(s->counts, pid, function, calls);
}

static void end_interval(struct top_screen *s, uint64_t now)
{
	capture_open_calls(s->capture, count_open_call, s);
	capture_counted_calls(s->capture, count_more, s);
	top_counts_tick(s->counts, now);
	measure_own_cost(s);
}

static void tick(struct top_screen *s, uint64_t now)
{
	end_interval(s, now);
	end_vanished(s, now);
	if (s->options.show)
		s->wanted = s->options.wanted(s->options.data);
	if (!s->view.paused) {
		take_snapshot(s);
		s->any_sample |= gpus_read(s->gpus, 0, &s->sample);
	}
	s->tick_ns += s->options.interval_ns;
	if (s->tick_ns <= now) /* it was stopped, or did not get a CPU */
		s->tick_ns = now + s->options.interval_ns;
	s->redraw = true;
}

/* The first one does not wait for the next page. */
static void look_for_readers(struct top_screen *s)
{
	s->wanted = s->options.wanted(s->options.data);
	if (!s->wanted)
		return;
	take_snapshot(s);
	s->redraw = true;
}

/* ---- the account --------------------------------------------------------------------------- */

static void turn_account(struct top_screen *s, uint64_t now)
{
	struct top_why_shown shown;

	if (top_why_turn(s->why, now, !s->options.show || s->wanted))
		capture_ask_for_snapshot(s->capture);
	shown = top_why_shown(s->why);
	if (shown.number == s->account_number)
		return;
	s->account_number = shown.number;
	s->redraw |= !s->options.show;
	if (s->options.show_account)
		s->options.show_account(s->options.data, shown.json, top_why_is_worn(s->why));
}

void top_screen_snapshot(void *data, const struct run_info *run)
{
	struct top_screen *s = data;

	top_why_take(s->why, run);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void on_key(struct top_screen *s, int key)
{
	bool paused = s->view.paused;

	fill_page(s);
	switch (top_key(&s->view, &s->page, key)) {
	case TOP_NOTHING:
		return;
	case TOP_QUIT:
		s->quit = true;
		break;
	case TOP_RESET:
		top_counts_reset(s->counts, clock_now_ns());
		take_snapshot(s);
		s->tick_ns = clock_now_ns() + s->options.interval_ns;
		break;
	case TOP_REDRAW:
		if (!s->view.paused || !paused) /* details of what was opened, or of all */
			take_snapshot(s);
		break;
	}
	s->redraw = true;
}

static void read_keys(struct top_screen *s)
{
	int key;

	while (!s->quit && (key = terminal_key()) != TERMINAL_NO_KEY) {
		if (key == TERMINAL_RESIZED)
			s->redraw = true;
		else
			on_key(s, key);
	}
}

/* ---- the end ------------------------------------------------------------------------------- */

static int write_out(FILE *out, struct buf *text, struct err *err)
{
	AT_END(lines_free) struct lines lines;
	int r;

	lines_init(&lines, out, "the page");
	buf_add(&lines.pending, text->data, text->len);
	r = lines_flush(&lines, err);
	buf_free(text);
	return r;
}

/* Of standard output; 0, where it is no terminal or too narrow for a page: as wide as names are. */
static size_t page_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col < TOP_COLUMNS ? 0 : size.ws_col;
}

/* The processes as plain text. */
static int print_page(struct top_screen *s, const struct run_info *run, struct err *err)
{
	struct buf text = { 0 };

	s->page.missed = !missed_nothing(run);
	top_view_init(&s->view);
	top_render(&s->page, &s->view, 0, page_columns(), &s->screen);
	screen_text(&s->screen, &text);
	if (s->page.missed) {
		buf_puts(&text, "\nWHAT WAS MISSED\n");
		missed_text(&text, run);
	}
	return write_out(stdout, &text, err);
}

static int print_json(struct top_screen *s, const struct run_info *run, struct err *err)
{
	struct buf text = { 0 };

	top_json(&s->page, run, 0, &text);
	return write_out(stdout, &text, err);
}

/* After the screen, what is worth keeping: the last page where the target's end was the end. */
static int leave(struct top_screen *s, const struct run_info *run, struct err *err)
{
	struct buf text = { 0 };

	if (!s->options.show)
		terminal_close();
	s->open = false;
	say_notices(s);
	if (!s->quit && !s->options.show)
		return print_page(s, run, err);
	if (!missed_nothing(run)) {
		missed_text(&text, run);
		return write_out(stderr, &text, err);
	}
	return 0;
}

/* ---- the consumer -------------------------------------------------------------------------- */

static int screen_begin_run(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct top_screen *s = (struct top_screen *)self;
	int r;

	s->gpus = gpus_new(s->options.interval_ns);
	s->tick_ns = run->begin_ns + s->options.interval_ns;
	measure_own_cost(s);
	s->run = run;
	if (s->options.once)
		return 0;
	r = s->options.show ? 0 : terminal_open(err);
	if (r)
		return r;
	s->open = true;
	s->view.keys = true;
	take_snapshot(s);
	draw(s);
	return 0;
}

static int screen_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct top_screen *s = (struct top_screen *)self;

	if (event->type != EVENT_PROCESS) /* all else is for struct top_counts */
		return 0;
	if (!s->who_tried)
		s->who = who_feed_new(false, true);
	s->who_tried = true;
	if (s->who)
		who_feed_process(s->who, event->process, event->time_ns);
	return 0;
}

static int screen_flush(struct consumer *self, struct err *err)
{
	struct top_screen *s = (struct top_screen *)self;
	uint64_t now = clock_now_ns();

	if (s->who)
		who_feed_turn(s->who, now);
	if (!s->open)
		return 0;
	if (!s->options.show)
		read_keys(s);
	if (now >= s->tick_ns)
		tick(s, now);
	else if (s->options.show && !s->wanted)
		look_for_readers(s);
	if (s->why)
		turn_account(s, now);
	if (s->redraw && !s->quit)
		draw(s);
	return 0;
}

static int screen_end_run(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct top_screen *s = (struct top_screen *)self;

	end_interval(s, run->end_ns);
	take_snapshot(s);
	s->any_sample |= gpus_read(s->gpus, s->options.once ? GPU_PATIENCE_NS : 0, &s->sample);
	fill_page(s);
	s->page.notice = NULL;
	memcpy(s->page.lost, run->lost, sizeof(s->page.lost));
	if (s->options.once)
		return s->options.json ? print_json(s, run, err) : print_page(s, run, err);
	return s->open ? leave(s, run, err) : 0;
}

static void screen_free_run(struct consumer *self)
{
	top_screen_free((struct top_screen *)self);
}

static const struct consumer_ops screen_ops = {
	.begin = screen_begin_run,
	.event = screen_event,
	.flush = screen_flush,
	.end = screen_end_run,
	.free = screen_free_run,
};

/* ---- the outside --------------------------------------------------------------------------- */

struct top_screen *top_screen_new(const struct top_screen_options *options)
{
	struct top_screen *s = xcalloc(1, sizeof(*s));

	s->consumer.ops = &screen_ops;
	s->options = *options;
	s->counts = top_counts_new();
	if (options->why && !options->gpu)
		top_counts_ignore_gpu(s->counts);
	s->why =
		options->why ? top_why_new(options->beside ? TOP_WHY_BESIDE : TOP_WHY_ALONE) : NULL;
	top_view_init(&s->view);
	return s;
}

void top_screen_free(struct top_screen *s)
{
	struct consumer *counts = top_counts_consumer(s->counts);

	if (s->open && !s->options.show)
		terminal_close();
	say_notices(s);
	top_why_free(s->why);
	gpus_free(s->gpus);
	who_feed_free(s->who);
	top_snapshot_free(&s->snapshot);
	screen_free(&s->screen);
	counts->ops->free(counts);
	free(s);
}

size_t top_screen_consumers(struct top_screen *s, struct consumer *consumers[TOP_SCREEN_CONSUMERS])
{
	consumers[0] = top_counts_consumer(s->counts);
	consumers[1] = &s->consumer;
	if (s->why)
		consumers[2] = top_why_consumer(s->why);
	return s->why ? 3 : 2;
}

void top_screen_measure(struct top_screen *s, struct capture *capture)
{
	s->capture = capture;
}

bool top_screen_quits(void *data)
{
	return ((struct top_screen *)data)->quit;
}
