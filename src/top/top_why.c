// SPDX-License-Identifier: MIT
#include "top/top_why.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "account/answer.h"
#include "analysis/work.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"
#include "base/own_memory.h"
#include "base/quota.h"
#include "base/rights.h"
#include "base/worker.h"
#include "capture/capture.h"
#include "report/why.h"
#include "trace/reader.h"
#include "trace/writer.h"

#define WINDOW_NS     10000000000ull
#define SLACK_NS      1000000000ull /* a chunk, which is dropped as a whole */
#define EVENTS_FIRST  16u   /* that a process takes of these, and then twice as many each time */
#define EVENTS_AT_A   1024u /* time, up to so many */
#define ANSWER_MS     8000
#define LATE_MS       1000 /* its own limit did not end it: it does not run */
#define ANSWER_NICE   10
#define ANSWER_BYTES  (256u << 10)
#define PIECE_BYTES   (32u << 10)
#define PIECES_A_TURN 4
#define KNOWN_ALL     1000000u /* threads, 24 bytes each, which no window drops, */
#define KNOWN_USER    500000u  /* and a user's but root */
#define LEFT_OUT_TOLD 8
#define WORN_PART     4 /* of a window: beside an agent 80,000 stacks of 60 frames */

static const struct why_bounds {
	uint32_t window_bytes, answer_bytes;   /* the latter besides what is there */
	struct quota_limit process, user, all; /* of events in a window */
	unsigned rests; /* that many times as long as an account took there is none; 0: no rest */
} bounds_of[] = {
	[TOP_WHY_ALONE] = { .window_bytes = 48u << 20,
	                    .answer_bytes = 768u << 20,
	                    .process = { 1000000, "1,000,000 of a process" },
	                    .user = { 2000000, "2,000,000 of its user" },
	                    .all = { 3000000, "3,000,000 of all" } },
	[TOP_WHY_BESIDE] = { .window_bytes = 24u << 20,
	                     .answer_bytes = 192u << 20,
	                     .process = { 500000, "500,000 of a process" },
	                     .user = { 1000000, "1,000,000 of its user" },
	                     .all = { 1500000, "1,500,000 of all" },
	                     .rests = 10 },
};

/* What a process did in a window. */
struct window_process {
	uint32_t pid;
	uint64_t person;
	uint32_t credit;        /* events that it may still have without asking, */
	uint32_t taken;         /* and that it took last */
	bool worked;            /* it asked for work, or work of it ran */
	uint64_t full_ns, more; /* its share was used up then; events that were left out */
	const char *why;        /* whose share that was */
	char comm[16];
	UT_hash_handle hh;
};

struct window {
	uint64_t begin_ns, end_ns;
	struct window_process *processes;
	struct quota events;
};

/* What the process that answers sends: a kind and a piece of it. */
enum piece_kind { PIECE_SELF, PIECE_JSON, PIECE_LINE, PIECE_END };

struct piece {
	uint32_t kind;
	uint32_t pid;    /* PIECE_END: of the process that the line is of; 0: of none */
	uint64_t cpu_ns; /* PIECE_END: what the answer took */
	char text[PIECE_BYTES];
};

struct top_why {
	struct consumer consumer; /* first */
	struct consumer *writer;  /* with a window */
	struct window now, asked; /* that is watched; that is over */
	bool watching, waiting;   /* somebody wants to see it; top_why_take() is to come */
	bool rests;               /* no window yet: the last account took long */
	uint64_t taken_ns;        /* when the last one was over, */
	uint64_t next_ns;         /* and the next one may be */
	const struct why_bounds *bounds;
	struct window_process *last;
	int socket;        /* of who answers; -1: nobody does */
	int pidfd;         /* of the same; -1: not known */
	uint64_t asked_ns; /* when it began */
	struct buf json, line;
	uint64_t lost[LOST_COUNT]; /* up to the window before; and of stacks: */
	uint64_t missed[STACKS_MISSED_COUNT];
	struct quota known; /* threads that were told of, ever */
	uint64_t cpu_ns;    /* of all that answered */
	uint64_t number;
	struct buf shown_json, shown_line;
	uint32_t shown_pid;
};

/* ---- what is shown ------------------------------------------------------------------------- */

static void show_state(struct top_why *why, const char *state, const char *sentence)
{
	struct json json = { .out = &why->shown_json };

	buf_reset(&why->shown_json);
	buf_reset(&why->shown_line);
	json_open(&json, NULL, '{');
	json_string(&json, "state", state);
	json_string(&json, "sentence", sentence);
	json_close(&json, '}');
	buf_puts(&why->shown_line, sentence);
	why->shown_pid = 0;
	why->number++;
}

static void show_answer(struct top_why *why, uint32_t pid)
{
	struct buf json = why->shown_json, line = why->shown_line;

	why->shown_json = why->json;
	why->shown_line = why->line;
	why->json = json;
	why->line = line;
	why->shown_pid = pid;
	why->number++;
}

struct top_why_shown top_why_shown(const struct top_why *why)
{
	if (!why->watching)
		return (struct top_why_shown){ 0 };
	return (struct top_why_shown){ .number = why->number,
		                       .json = why->shown_json.data,
		                       .line = why->shown_line.data,
		                       .pid = why->shown_pid };
}

/* ---- the window ---------------------------------------------------------------------------- */

static void window_end(struct window *window)
{
	MAP_FREE(window->processes, free);
	quota_free(&window->events);
	*window = (struct window){ 0 };
}

static struct window window_from(const struct top_why *why, uint64_t begin_ns)
{
	return (struct window){ .begin_ns = begin_ns,
		                .events = { .process = why->bounds->process,
		                            .user = why->bounds->user,
		                            .all = why->bounds->all } };
}

static struct window_process *find_process(struct top_why *why, const struct process *process)
{
	struct window_process *found = why->last;

	if (found && found->pid == process->pid)
		return found;
	found = MAP_FIND(why->now.processes, &process->pid);
	if (!found) { /* as many as the capture knows */
		found = MAP_ADD(why->now.processes, pid, &process->pid);
		found->person = process->person;
		found->taken = EVENTS_FIRST / 2;
		memcpy(found->comm, process->comm, sizeof(found->comm));
	}
	return why->last = found;
}

/* Whether the process may have one more; the first that it may not is when its account ends. */
static bool has_room(struct top_why *why, const struct event *event)
{
	struct window_process *process = find_process(why, event->process);

	process->worked |= event->type == EVENT_ACTIVITY ||
	                   (event->type == EVENT_CALL && call_asks_for_work(event->call));
	if (!process->credit && !process->full_ns) {
		if (process->taken < EVENTS_AT_A)
			process->taken *= 2;
		process->why =
			quota_take(&why->now.events, process->person, process->pid, process->taken);
		if (process->why)
			process->full_ns = event->time_ns;
		else
			process->credit = process->taken;
	}
	process->more += process->full_ns > 0;
	process->credit -= process->full_ns == 0;
	return !process->full_ns;
}

/* What all windows need is told whether somebody looks or not. */
static bool is_of_all(const struct event *event)
{
	return event->type == EVENT_PROCESS || event->type == EVENT_THREAD ||
	       event->type == EVENT_EXIT;
}

/* A thread that there is no room for has no name. */
static bool is_known(struct top_why *why, const struct event *event)
{
	return event->type != EVENT_THREAD ||
	       !quota_take(&why->known, event->process->person, 0, 1);
}

static int see_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct top_why *why = (struct top_why *)self;

	return why->writer->ops->begin(why->writer, run, err);
}

static int see_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct top_why *why = (struct top_why *)self;

	if (is_of_all(event) ? !is_known(why, event)
	                     : !why->watching || why->rests || !has_room(why, event))
		return 0;
	return why->writer->ops->event(why->writer, event, err);
}

static int see_flush(struct consumer *self, struct err *err)
{
	struct top_why *why = (struct top_why *)self;

	return why->writer->ops->flush(why->writer, err);
}

/* What is held then is of no use to anybody. */
static int see_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	return 0;
}

static const struct consumer_ops ops = {
	.begin = see_begin, .event = see_event, .flush = see_flush, .end = see_end, .stalls = true
};

/* ---- who answers --------------------------------------------------------------------------- */

/* In a process of its own: all that it does to memory is nobody else's. */
struct answering {
	struct top_why *why;
	const struct run_info *run;
	int file;
	struct consumer reader; /* of the processes whose account it is, */
	struct consumer *answer;
	uint64_t from_ns, to_ns;
	bool leaves_out; /* processes that had too many events */
	bool cut;        /* or ends when the first had */
	struct err err;
};

static int open_window(void *data, const char **name, struct err *err)
{
	struct answering *a = data;
	int fd = fcntl(a->file, F_DUPFD_CLOEXEC, 0);

	*name = "the window";
	return fd < 0 ? err_set(err, errno, "cannot hold the window: %s", strerror(errno)) : fd;
}

/* Who had too many events is left out, where others asked for work. */
static void choose_part(struct answering *a)
{
	const struct window *window = &a->why->asked;
	const struct window_process *process, *next;
	uint64_t full_ns = UINT64_MAX;

	a->from_ns = window->begin_ns;
	a->to_ns = window->end_ns;
	HASH_ITER (hh, window->processes, process, next) {
		a->leaves_out |= process->worked && !process->full_ns;
		if (process->worked && process->full_ns && process->full_ns < full_ns)
			full_ns = process->full_ns;
	}
	if (full_ns < a->from_ns)
		full_ns = a->from_ns;
	a->leaves_out &= full_ns < UINT64_MAX;
	a->cut = !a->leaves_out && full_ns < a->to_ns;
	if (a->cut)
		a->to_ns = full_ns;
}

static int answer_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct answering *a =
		(struct answering *)((char *)self - offsetof(struct answering, reader));
	const struct window_process *process =
		a->leaves_out ? MAP_FIND(a->why->asked.processes, &event->process->pid) : NULL;

	return process && process->full_ns ? 0 : a->answer->ops->event(a->answer, event, err);
}

static int answer_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct answering *a =
		(struct answering *)((char *)self - offsetof(struct answering, reader));

	return a->answer->ops->end(a->answer, run, err);
}

static const struct consumer_ops reader_ops = { .event = answer_event,
	                                        .end = answer_end,
	                                        .stalls = true };

/* Times as `why` has them are after the begin of what is read. */
static int read_window(struct answering *a, struct trace_file *file)
{
	uint64_t begin_ns = trace_run(file)->begin_ns;
	const struct trace_read_options read = {
		.from_ns = a->from_ns, .to_ns = a->to_ns, .cut = true, .hooks_whole = true
	};
	const struct why_options options = {
		.from_ns = a->from_ns > begin_ns ? a->from_ns - begin_ns : 0,
		.to_ns = a->to_ns > begin_ns ? a->to_ns - begin_ns : 0,
	};
	struct consumer *reader = &a->reader;
	int rc;

	a->reader.ops = &reader_ops;
	a->answer = why_new(&options);
	if (begin_ns > a->from_ns)
		a->from_ns = begin_ns;
	rc = trace_read(file, &read, &reader, 1, &a->err);
	return rc == -EBADMSG ? 0 : rc; /* of what could be read; the sentence is told with it */
}

static int make_answer(struct answering *a)
{
	struct trace_file *file;
	int rc;

	choose_part(a);
	a->file = memfd_create("window", MFD_CLOEXEC);
	if (a->file < 0)
		return err_set(&a->err, errno, "cannot hold the window: %s", strerror(errno));
	writer_redirect(a->why->writer, open_window, NULL, a);
	rc = writer_snapshot(a->why->writer, a->run, &a->err);
	if (!rc && rights_give_up(own_mapped_bytes() + a->why->bounds->answer_bytes))
		rc = err_set(&a->err, EPERM, "the account is not made by a process with rights");
	if (!rc)
		rc = trace_open_fd(a->file, "the window", &file, &a->err);
	return rc ? rc : read_window(a, file);
}

/* Of ten seconds, what is not in it. */
static void add_left_out(const struct answering *a, struct json *json)
{
	const struct window_process *process, *next;
	AT_END(buf_free) struct buf text = { 0 };
	size_t n = 0;

	json_open(json, "left_out", '[');
	HASH_ITER (hh, a->why->asked.processes, process, next) {
		if (!process->full_ns || n++ >= LEFT_OUT_TOLD)
			continue;
		buf_reset(&text);
		buf_printf(&text, "%s (pid %u): %lu further events, beyond %s", process->comm,
		           process->pid, process->more, process->why);
		json_string(json, NULL, text.data);
	}
	if (n > LEFT_OUT_TOLD) {
		buf_reset(&text);
		buf_printf(&text, "the same of %zu more processes", n - LEFT_OUT_TOLD);
		json_string(json, NULL, text.data);
	}
	if (a->cut)
		json_string(json, NULL, "what came after the first of these");
	if (a->from_ns > a->why->asked.begin_ns + SLACK_NS) {
		buf_reset(&text);
		buf_printf(&text, "what came first, of which there is more than %u MiB",
		           a->why->bounds->window_bytes >> 20);
		json_string(json, NULL, text.data);
	}
	if (a->err.text[0])
		json_string(json, NULL, a->err.text);
	json_close(json, ']');
}

/* The sentence that matters most; the first line, where it has none of these. */
static void pick_line(const struct buf *text, struct buf *line)
{
	static const char *const begins[] = { "Standing still", "Change first:", "Nothing ",
		                              "Not known: " };
	const char *at = text->data;

	for (const char *end; (end = strchr(at, '\n')) && !line->len; at = end + 1)
		for (size_t i = 0; i < ARRAY_SIZE(begins) && !line->len; i++)
			if (!strncmp(at, begins[i], strlen(begins[i])))
				buf_add(line, at, (size_t)(end - at));
	if (!line->len)
		buf_add(line, text->data, strcspn(text->data, "\n"));
}

static uint64_t since_begin(const struct answering *a, uint64_t time_ns)
{
	return time_ns > a->run->begin_ns ? time_ns - a->run->begin_ns : 0;
}

/* `text` NULL: without it, where there is no room for both. */
static void write_answer(const struct answering *a, const char *text, struct buf *out)
{
	struct json json = { .out = out };

	buf_reset(out);
	json_open(&json, NULL, '{');
	json_string(&json, "state", "answer");
	json_u64(&json, "from_ns", since_begin(a, a->from_ns));
	json_u64(&json, "until_ns", since_begin(a, a->to_ns));
	add_left_out(a, &json);
	why_add_json(a->answer, &json, "why");
	json_string_if(&json, "text", text);
	json_close(&json, '}');
}

static void send_pieces(int socket, enum piece_kind kind, const struct buf *text)
{
	struct piece piece = { .kind = kind };

	for (size_t at = 0; at < text->len; at += PIECE_BYTES) {
		size_t n = text->len - at < PIECE_BYTES ? text->len - at : PIECE_BYTES;

		memcpy(piece.text, text->data + at, n);
		if (worker_send(socket, &piece, offsetof(struct piece, text) + n, -1))
			_exit(1); /* nobody listens any more */
	}
}

static void send_answer(const struct answering *a, int socket)
{
	const struct answer *answer = why_answer(a->answer);
	AT_END(buf_free) struct buf text = { 0 }, line = { 0 }, json = { 0 };
	struct piece end = { .kind = PIECE_END };

	why_add_text(a->answer, &text);
	pick_line(&text, &line);
	write_answer(a, text.data, &json);
	if (json.len > ANSWER_BYTES)
		write_answer(a, NULL, &json);
	if (answer->n_changes)
		end.pid = answer->changes[0].account->process->pid;
	send_pieces(socket, PIECE_JSON, &json);
	send_pieces(socket, PIECE_LINE, &line);
	end.cpu_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	worker_send(socket, &end, offsetof(struct piece, text), -1);
}

/* By what it is ended: it is nobody's, as others are, who may stop it. */
static void send_self(int socket)
{
	const struct piece self = { .kind = PIECE_SELF };
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (pidfd < 0)
		return;
	worker_send(socket, &self, offsetof(struct piece, text), pidfd);
	close(pidfd);
}

static void run_answer(void *data, int socket)
{
	struct answering *a = data;

	send_self(socket);
	worker_goes_first();
	prctl(PR_SET_NAME, "cuscope-why");
	worker_close_all_but(socket, -1);
	worker_end_after(ANSWER_MS);
	setpriority(PRIO_PROCESS, 0, ANSWER_NICE);
	if (make_answer(a)) {
		struct piece failed = { .kind = PIECE_END };

		snprintf(failed.text, sizeof(failed.text), "%s", a->err.text);
		worker_send(socket, &failed, offsetof(struct piece, text) + strlen(failed.text) + 1,
		            -1);
	} else {
		send_answer(a, socket);
	}
	_exit(0);
}

void top_why_take(struct top_why *why, const struct run_info *run)
{
	struct run_info of_window = *run;
	struct answering answering = { .why = why, .run = &of_window };
	int rc;

	if (!why->waiting)
		return;
	why->waiting = false;
	for (int i = 0; i < LOST_COUNT; i++)
		of_window.lost[i] -= why->lost[i] < run->lost[i] ? why->lost[i] : run->lost[i];
	for (int i = 0; i < STACKS_MISSED_COUNT; i++)
		of_window.stacks.missed[i] -= why->missed[i] < run->stacks.missed[i]
		                                      ? why->missed[i]
		                                      : run->stacks.missed[i];
	memcpy(why->lost, run->lost, sizeof(why->lost));
	memcpy(why->missed, run->stacks.missed, sizeof(why->missed));
	why->asked_ns = clock_now_ns();
	rc = worker_fork(false, run_answer, &answering, &why->socket);
	if (rc) {
		why->socket = -1;
		show_state(why, "failed", strerror(-rc));
	}
	window_end(&why->asked);
}

/* ---- what it says -------------------------------------------------------------------------- */

/*
 * It has ended, or is ended: also where somebody has stopped it. What it took is by our clock, as
 * its own word may be a stranger's.
 */
static void stop_listening(struct top_why *why)
{
	if (why->socket >= 0)
		why->next_ns =
			why->taken_ns + why->bounds->rests * (clock_now_ns() - why->asked_ns);
	if (why->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, why->pidfd, SIGKILL, NULL, 0);
		close(why->pidfd);
	}
	if (why->socket >= 0)
		close(why->socket);
	why->socket = why->pidfd = -1;
	buf_reset(&why->json);
	buf_reset(&why->line);
}

static void take_end(struct top_why *why, const struct piece *piece, size_t bytes)
{
	why->cpu_ns += piece->cpu_ns;
	if (bytes > offsetof(struct piece, text))
		show_state(why, "failed", piece->text);
	else
		show_answer(why, piece->pid);
	stop_listening(why);
}

static void tell_ended(struct top_why *why)
{
	AT_END(buf_free) struct buf text = { 0 };

	if (clock_now_ns() - why->asked_ns >= ANSWER_MS * 1000000ull)
		buf_puts(&text, "no account of the last ten seconds: eight were not enough to make "
		                "it");
	else
		buf_printf(&text,
		           "no account of the last ten seconds: the process that makes it was "
		           "ended, as for want of its %u MiB",
		           why->bounds->answer_bytes >> 20);
	show_state(why, "failed", text.data);
	stop_listening(why);
}

static void take_piece(struct top_why *why, const struct piece *piece, ssize_t bytes)
{
	struct buf *into = piece->kind == PIECE_LINE ? &why->line : &why->json;
	size_t n = (size_t)bytes - offsetof(struct piece, text);

	if (bytes < (ssize_t)offsetof(struct piece, text)) { /* it has ended */
		tell_ended(why);
	} else if (piece->kind == PIECE_SELF) {
		return;
	} else if (piece->kind == PIECE_END) {
		take_end(why, piece, (size_t)bytes);
	} else if (into->len + n > ANSWER_BYTES) {
		show_state(why, "failed", "the account is longer than 256 KiB");
		stop_listening(why);
	} else {
		buf_add(into, piece->text, n);
	}
}

static void listen_to_it(struct top_why *why)
{
	struct pollfd ready = { .fd = why->socket, .events = POLLIN };
	struct piece piece;

	for (int i = 0; i < PIECES_A_TURN && why->socket >= 0 && poll(&ready, 1, 0) > 0; i++) {
		int fd = -1;
		ssize_t bytes = worker_receive(why->socket, &piece, sizeof(piece) - 1, &fd);

		if (bytes >= 0)
			((char *)&piece)[bytes] = '\0';
		if (fd >= 0 && why->pidfd < 0)
			why->pidfd = fd;
		else if (fd >= 0)
			close(fd);
		take_piece(why, &piece, bytes);
	}
	if (why->socket >= 0 && clock_now_ns() - why->asked_ns > (ANSWER_MS + LATE_MS) * 1000000ull)
		tell_ended(why);
}

/* ---- its life ------------------------------------------------------------------------------ */

static void begin_watching(struct top_why *why, uint64_t now_ns)
{
	why->watching = true;
	why->rests = false;
	why->now = window_from(why, now_ns);
	show_state(why, "recording", "the first ten seconds are being recorded");
}

static void end_watching(struct top_why *why)
{
	why->watching = why->waiting = false;
	why->last = NULL;
	window_end(&why->now);
	window_end(&why->asked);
	stop_listening(why);
}

/* A window whose end would be too early for an account is not of any use: a later one is. */
static void turn_rest(struct top_why *why, uint64_t now_ns)
{
	if (why->now.begin_ns + WINDOW_NS >= why->next_ns)
		return;
	why->rests = now_ns + WINDOW_NS < why->next_ns;
	if (why->rests)
		return;
	window_end(&why->now);
	why->now = window_from(why, now_ns);
	why->last = NULL;
}

bool top_why_turn(struct top_why *why, uint64_t now_ns, bool wanted)
{
	if (wanted && !why->watching)
		begin_watching(why, now_ns);
	else if (!wanted && why->watching)
		end_watching(why);
	if (!why->watching)
		return false;
	listen_to_it(why);
	turn_rest(why, now_ns);
	if (why->rests || now_ns < why->now.begin_ns + WINDOW_NS || why->waiting ||
	    why->socket >= 0)
		return false;
	why->asked = why->now;
	why->asked.end_ns = why->taken_ns = now_ns;
	if (now_ns - why->asked.begin_ns > WINDOW_NS + SLACK_NS) /* it waited for an answer */
		why->asked.begin_ns = now_ns - WINDOW_NS;
	why->now = window_from(why, now_ns);
	why->last = NULL;
	return why->waiting = true;
}

/* What is held is written by who answers alone. */
static int no_file(void *data, const char **name, struct err *err)
{
	return err_set(err, ECANCELED, "nothing is kept");
}

bool top_why_is_worn(const struct top_why *why)
{
	struct writer_stats stats;

	writer_stats(why->writer, &stats);
	return stats.defined > why->bounds->window_bytes / WORN_PART;
}

uint64_t top_why_cpu_ns(const struct top_why *why)
{
	return why ? why->cpu_ns : 0;
}

struct top_why *top_why_new(enum top_why_place place)
{
	struct top_why *why = xcalloc(1, sizeof(*why));

	why->bounds = &bounds_of[place];

	why->consumer.ops = &ops;
	why->socket = why->pidfd = -1;
	why->known = (struct quota){ .user = { KNOWN_USER }, .all = { KNOWN_ALL } };
	why->writer = writer_new_window(
		&(struct writer_window){ .last_ns = WINDOW_NS + CAPTURE_GPU_LATE_NS + 2 * SLACK_NS,
	                                 .last_bytes = why->bounds->window_bytes,
	                                 .open = no_file });
	return why;
}

void top_why_free(struct top_why *why)
{
	if (!why)
		return;
	end_watching(why);
	quota_free(&why->known);
	why->writer->ops->free(why->writer);
	buf_free(&why->json);
	buf_free(&why->line);
	buf_free(&why->shown_json);
	buf_free(&why->shown_line);
	free(why);
}

struct consumer *top_why_consumer(struct top_why *why)
{
	return &why->consumer;
}
