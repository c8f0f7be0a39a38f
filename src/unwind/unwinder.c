// SPDX-License-Identifier: MIT
#include "unwind/unwinder.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "probe/account.h"
#include "probe/person.h"
#include "unwind/code_look.h"

/* ---- splice -------------------------------------------------------------------------------- */

struct splicing {
	const struct wire_entry *entries;
	uint64_t sp;                 /* of the innermost native one */
	size_t natives, natives_end; /* where the native ones are */
	size_t python, end;          /* where those of Python are, with their anchors */
	bool (*is_evaluator)(void *data, const struct wire_entry *native);
	void *data;
	struct wire_entry *out;
	size_t n_out;
};

static uint64_t cfa_of(const struct wire_entry *native)
{
	return native->b & ENTRY_CFA_MASK;
}

/* Where the invocation ends whose frames begin at `from`: its anchor, or the end. */
static size_t anchor_after(const struct splicing *s, size_t from)
{
	while (from < s->end && entry_kind(&s->entries[from]) != ENTRY_ANCHOR)
		from++;
	return from;
}

/*
 * Whether an address is in the frame of native entry `i`, between its stack pointer and its CFA.
 * The frames of a signal's handler may be on a stack of their own, so its place among the others
 * says nothing.
 */
static bool splice_holds(const struct splicing *s, size_t i, uint64_t address)
{
	uint64_t low = i > s->natives ? cfa_of(&s->entries[i - 1]) : s->sp;

	return low && address >= low && address < cfa_of(&s->entries[i]);
}

/* The native frame of the next invocation, at or outside of `from`; natives_end: there is none. */
static size_t find_evaluator(const struct splicing *s, size_t from, size_t anchor)
{
	uint64_t address = anchor < s->end ? s->entries[anchor].a : 0;

	for (size_t i = from; address && i < s->natives_end; i++)
		if (splice_holds(s, i, address))
			return i;
	for (size_t i = from; s->is_evaluator && i < s->natives_end; i++)
		if (s->is_evaluator(s->data, &s->entries[i]))
			return i;
	return s->natives_end;
}

static void splice_copy(struct splicing *s, size_t from, size_t to)
{
	for (; from < to && s->n_out < STACK_ENTRIES_MAX; from++)
		if (entry_kind(&s->entries[from]) != ENTRY_ANCHOR)
			s->out[s->n_out++] = s->entries[from];
}

size_t stack_splice(const struct wire_entry *entries, size_t n, uint64_t sp, struct wire_entry *out,
                    bool (*is_evaluator)(void *data, const struct wire_entry *native), void *data,
                    bool *loosely)
{
	struct splicing s = { .entries = entries,
		              .sp = sp,
		              .end = n,
		              .is_evaluator = is_evaluator,
		              .data = data,
		              .out = out };
	size_t native, anchor, at;

	*loosely = false;
	while (s.natives < n && entry_kind(&entries[s.natives]) == ENTRY_KERNEL)
		s.natives++;
	s.natives_end = s.natives;
	while (s.natives_end < n && entry_kind(&entries[s.natives_end]) == ENTRY_NATIVE)
		s.natives_end++;
	splice_copy(&s, 0, s.natives);
	native = s.natives;
	for (at = s.natives_end; at < n; at = anchor + 1) {
		size_t evaluator;

		anchor = anchor_after(&s, at);
		evaluator = anchor > at ? find_evaluator(&s, native, anchor) : native;
		if (anchor == at) /* an invocation that has not begun to run a frame */
			continue;
		if (evaluator == s.natives_end) {
			*loosely = true;
			splice_copy(&s, native, s.natives_end);
			splice_copy(&s, at, n);
			return s.n_out;
		}
		splice_copy(&s, native, evaluator);
		splice_copy(&s, at, anchor);
		native = evaluator + 1;
	}
	splice_copy(&s, native, s.natives_end);
	return s.n_out;
}

/* ---- unwinder ------------------------------------------------------------------------------ */

#define AGAIN_NS  20000000ull                    /* between two looks at one process */
#define MOST_NS   10240000000ull                 /* and when they brought nothing new */
#define SHARE_MAX (UNWIND_PROCESSES_MAX * 3 / 4) /* of one user but root */

struct unwound { /* a process */
	pid_t pid;
	uint64_t person; /* whose it is: person.h */
	bool asked, in_map;
	bool gone;                  /* the thread drops it, whose the tables are */
	unsigned program;           /* how often it has become another one */
	uint64_t looks;             /* how many there were */
	uint64_t looked_ns;         /* 0: never */
	uint64_t patience_ns;       /* until it may be looked at again */
	uint64_t told;              /* what the programs were told last, as a number */
	bool looked_at;             /* now */
	struct code_table **tables; /* that it holds */
	size_t n_tables;
	const struct python_layout *python;
	uint64_t python_ns; /* when the look began that found it */
	unsigned refused;   /* how often there was no room for it */
	bool python_unknown;
	bool python_waits; /* its Python has yet to begin: another look tells whether it has */
	bool cut;          /* it has more executable mappings than are kept */
	UT_hash_handle hh;
};

struct unwinder {
	struct unwinder_maps maps;
	struct unwinder_told told;
	struct code_tables *tables; /* the thread's, while it looks */
	pthread_mutex_t lock;       /* of all below */
	pthread_cond_t asked, done;
	pthread_t thread;
	struct unwound *processes;
	struct quota told_of; /* processes that are in the map */
	uint32_t generation;  /* the last one of any process: a pid may be used again */
	bool looking;         /* the tables are in use, */
	bool hurried;         /* which somebody waits for: the look is to end early */
	bool dropping;        /* the tables are in use, and nobody waits for that */
	bool stopping;
	struct unwinder_figures figures;
};

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
		                  .tv_nsec = (long)(ns % 1000000000) };
}

/* ---- what the programs are told -------------------------------------------------------------- */

static void untell_python(struct unwinder *u, struct unwound *process)
{
	uint32_t key = (uint32_t)process->pid;

	if (process->python)
		bpf_map_delete_elem(u->maps.python, &key);
	process->python = NULL;
	process->python_unknown = process->python_waits = false;
}

static void tell_python(struct unwinder *u, struct unwound *process, const struct code_look *look)
{
	const struct python_layout *layout = NULL;
	enum python_found found = PYTHON_NONE;
	struct wire_python python;
	uint32_t key = (uint32_t)process->pid;

	if (!look->runtime || (process->python && !process->python_waits))
		return;
	if (look->version >> 24 == 3)
		layout = python_layout(look->version >> 16 & 0xff);
	if (layout)
		found = code_look_python(look, layout, &python);
	if (found == PYTHON_NONE)
		untell_python(u, process);
	process->python_unknown = found != PYTHON_BEGUN;
	process->python_waits = found == PYTHON_NOT_BEGUN;
	if (found != PYTHON_NONE && !process->python &&
	    bpf_map_update_elem(u->maps.python, &key, &python, BPF_ANY) == 0) {
		process->python = layout;
		process->python_ns = process->looked_ns;
	}
}

/* So many processes of one user but root; the others of them wait. */
static bool put_code(struct unwinder *u, struct unwound *process, const struct code_look *look)
{
	uint32_t key = (uint32_t)process->pid;

	if (!process->in_map && quota_take(&u->told_of, process->person, 0, 1))
		return false;
	if (bpf_map_update_elem(u->maps.code, &key, &look->code, BPF_ANY) == 0)
		return process->in_map = true;
	if (!process->in_map)
		quota_give(&u->told_of, process->person, 0, 1);
	return false;
}

static void tell_code(struct unwinder *u, struct unwound *process, struct code_look *look)
{
	u->figures.cut += look->cut && !process->cut;
	process->cut |= look->cut;
	if (process->told != look->sum)
		process->patience_ns = AGAIN_NS;
	else if (process->patience_ns < MOST_NS)
		process->patience_ns *= 2;
	if (process->in_map && process->told == look->sum)
		return;
	look->code.generation = ++u->generation;
	for (uint32_t i = look->code.count; i < UNWIND_MAPPINGS_MAX; i++)
		look->code.begin[i] = UNWIND_NOWHERE;
	if (!put_code(u, process, look) && !process->refused++)
		u->figures.without_room++;
	process->told = look->sum;
}

/* Tables that nobody asks for any more. */
struct dropped {
	struct code_table **tables;
	size_t n;
};

/* Takes over what was allocated for them. */
static void add_dropped(struct dropped *dropped, struct code_table **tables, size_t n)
{
	if (n)
		dropped->tables =
			xrealloc(dropped->tables, (dropped->n + n) * sizeof(*dropped->tables));
	for (size_t i = 0; i < n; i++)
		dropped->tables[dropped->n++] = tables[i];
	free(tables);
}

/*
 * Without the lock, for which the main thread waits: the kernel takes some 10 ms until no program
 * can be in a table any more, as long for one of them as for a thousand.
 */
static void drop_tables(struct unwinder *u, struct dropped *dropped)
{
	if (!dropped->n)
		return;
	u->dropping = true;
	pthread_mutex_unlock(&u->lock);
	code_tables_drop(u->tables, dropped->tables, dropped->n);
	free(dropped->tables);
	pthread_mutex_lock(&u->lock);
	u->dropping = false;
}

/* Without the lock: files are read. `told`: what the programs know, 0: nothing. */
static struct code_look *look_at(struct unwinder *u, pid_t pid, uint64_t person, unsigned program,
                                 uint64_t told)
{
	struct code_look *look = code_look_at(u->tables, pid, person, &u->hurried);

	if (!look) /* it has ended: what was known of it stays */
		return NULL;
	look->program = program;
	if (u->told.looked && look->sum != told)
		u->told.looked(u->told.data, pid);
	return look;
}

static void take_over(struct unwinder *u, struct unwound *process, struct code_look *look,
                      struct dropped *dropped)
{
	if (process->gone || look->program != process->program) {
		add_dropped(dropped, look->tables, look->n_tables);
		free(look);
		return;
	}
	process->asked |= look->late;
	tell_code(u, process, look);
	tell_python(u, process, look);
	add_dropped(dropped, process->tables, process->n_tables);
	process->tables = look->tables;
	process->n_tables = look->n_tables;
	free(look);
}

/* The programs know nothing of it from now on. */
static void untell(struct unwinder *u, struct unwound *process)
{
	uint32_t key = (uint32_t)process->pid;

	if (process->in_map) {
		bpf_map_delete_elem(u->maps.code, &key);
		quota_give(&u->told_of, process->person, 0, 1);
	}
	process->in_map = false;
	untell_python(u, process);
}

/* Its tables are left to the caller. */
static void drop_process(struct unwinder *u, struct unwound *process, struct dropped *dropped)
{
	HASH_DEL(u->processes, process);
	untell(u, process);
	add_dropped(dropped, process->tables, process->n_tables);
	free(process);
}

/* All together: thousands may have ended at once. */
static void drop_gone(struct unwinder *u)
{
	struct unwound *process, *next;
	struct dropped dropped = { 0 };

	HASH_ITER (hh, u->processes, process, next)
		if (process->gone)
			drop_process(u, process, &dropped);
	drop_tables(u, &dropped);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Its user has had what there is for looks: a list of mappings can take half a second, and
 * processes that have such lists map something all the time. */
static bool others_come_first(const struct unwound *process)
{
	return look_time_was_over(LOOK_AT_TABLES) &&
	       look_time_is_over(LOOK_AT_TABLES, process->person);
}

/* Of those that have something to be done, the one that waits longest; else *wait_ns until one will
 * have, 0: none was asked for. */
static struct unwound *next_asked(struct unwinder *u, uint64_t *wait_ns)
{
	struct unwound *process, *next, *first = NULL, *last = NULL;
	uint64_t now = clock_now_ns();

	*wait_ns = 0;
	HASH_ITER (hh, u->processes, process, next) {
		uint64_t since = now - process->looked_ns;

		if (process->gone)
			return process;
		if (!process->asked && !process->python_waits)
			continue;
		if (!process->looked_ns || since >= process->patience_ns) {
			struct unwound **of = others_come_first(process) ? &last : &first;

			if (!*of || process->looked_ns < (*of)->looked_ns)
				*of = process;
		} else if (!*wait_ns || process->patience_ns - since < *wait_ns) {
			*wait_ns = process->patience_ns - since;
		}
	}
	return first ? first : last;
}

/* A Python that has yet to begin may never do so: nobody waits for that. */
static bool is_asked(const struct unwinder *u)
{
	const struct unwound *process;

	for (process = u->processes; process; process = process->hh.next)
		if (process->asked || process->gone)
			return true;
	return false;
}

static void wait_for_asked(struct unwinder *u, uint64_t wait_ns)
{
	struct timespec until;

	if (!wait_ns) {
		pthread_cond_broadcast(&u->done);
		pthread_cond_wait(&u->asked, &u->lock);
		return;
	}
	if (!is_asked(u))
		pthread_cond_broadcast(&u->done);
	until = time_of(clock_now_ns() + wait_ns);
	pthread_cond_timedwait(&u->asked, &u->lock, &until);
}

static void serve(struct unwinder *u, struct unwound *process)
{
	pid_t pid = process->pid;
	unsigned program = process->program;
	uint64_t person = process->person;
	uint64_t told = process->in_map ? process->told : 0;
	struct dropped dropped = { 0 };
	struct code_look *look;

	if (process->gone) {
		drop_gone(u);
		return;
	}
	process->asked = false;
	process->looked_ns = clock_now_ns();
	u->looking = process->looked_at = true;
	__atomic_store_n(&u->hurried, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&u->lock);
	look = look_at(u, pid, person, program, told);
	pthread_mutex_lock(&u->lock);
	if (look)
		take_over(u, process, look, &dropped);
	else if (!process->in_map && !process->asked)
		process->gone = true; /* a late record had asked for one that has ended */
	process->looks++;
	u->looking = process->looked_at = false;
	pthread_cond_broadcast(&u->done);
	drop_tables(u, &dropped);
}

static void *run(void *data)
{
	struct unwinder *u = data;
	struct unwound *process;
	uint64_t wait_ns;

	LOCKED(&u->lock);
	while (!u->stopping) {
		process = next_asked(u, &wait_ns);
		if (process)
			serve(u, process);
		else
			wait_for_asked(u, wait_ns);
	}
	return NULL;
}

static void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

int unwinder_new(const struct unwinder_maps *maps, const struct unwinder_told *told,
                 struct unwinder **unwinder, struct err *err)
{
	struct unwinder *u = xcalloc(1, sizeof(*u));
	sigset_t all, old;
	int r;

	u->maps = *maps;
	u->told = *told;
	u->told_of.user.most = SHARE_MAX;
	u->tables = code_tables_new(maps->files, maps->rules, told->marked, told->data);
	pthread_mutex_init(&u->lock, NULL);
	init_condition(&u->asked);
	init_condition(&u->done);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals go to the main thread */
	r = pthread_create(&u->thread, NULL, run, u);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r) {
		code_tables_free(u->tables);
		free(u);
		return err_set(err, r, "starting a thread: %s", strerror(r));
	}
	*unwinder = u;
	return 0;
}

void unwinder_stop(struct unwinder *u)
{
	bool stopped;

	pthread_mutex_lock(&u->lock);
	stopped = u->stopping;
	u->stopping = true;
	pthread_cond_broadcast(&u->asked);
	pthread_mutex_unlock(&u->lock);
	if (!stopped)
		pthread_join(u->thread, NULL); /* each read of a file has a limit: probe/helper.h */
	code_tables_unmark(u->tables);
}

void unwinder_free(struct unwinder *u)
{
	struct unwound *process, *next;
	struct dropped dropped = { 0 };

	if (!u)
		return;
	unwinder_stop(u);
	HASH_ITER (hh, u->processes, process, next)
		drop_process(u, process, &dropped);
	code_tables_drop(u->tables, dropped.tables, dropped.n);
	free(dropped.tables);
	quota_free(&u->told_of);
	code_tables_free(u->tables);
	pthread_cond_destroy(&u->asked);
	pthread_cond_destroy(&u->done);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct unwound *find(struct unwinder *u, pid_t pid)
{
	return MAP_FIND(u->processes, &pid);
}

static struct unwound *ask(struct unwinder *u, pid_t pid)
{
	struct unwound *process = find(u, pid);

	if (!process) {
		process = MAP_ADD(u->processes, pid, &pid);
		process->person = person_of_process(pid);
		process->patience_ns = AGAIN_NS;
	}
	if (!process->asked)
		pthread_cond_broadcast(&u->asked);
	process->asked = true;
	process->gone = false;
	return process;
}

void unwinder_see(struct unwinder *u, pid_t pid)
{
	LOCKED(&u->lock);
	ask(u, pid);
}

void unwinder_hurry(struct unwinder *u, pid_t pid)
{
	struct unwound *process;

	LOCKED(&u->lock);
	process = ask(u, pid);
	process->looked_ns = 0;
	process->patience_ns = AGAIN_NS;
	__atomic_store_n(&u->hurried, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&u->asked);
}

bool unwinder_look(struct unwinder *u, pid_t pid, uint64_t most_ns)
{
	struct timespec until = time_of(clock_now_ns() + most_ns);
	struct unwound *process;
	uint64_t looks;
	bool done;

	LOCKED(&u->lock);
	process = ask(u, pid);
	process->looked_ns = 0;
	looks = process->looks + process->looked_at; /* one under way may have begun too early */
	pthread_cond_broadcast(&u->asked);
	while (process && !(done = process->looks > looks)) {
		if (pthread_cond_timedwait(&u->done, &u->lock, &until))
			break;
		process = find(u, pid);
	}
	return process && done;
}

/* What it had mapped, and its Python, mean nothing any more. */
static void end_program(struct unwinder *u, struct unwound *process)
{
	process->program++;
	process->looked_ns = 0;
	process->patience_ns = AGAIN_NS;
	untell(u, process);
	pthread_cond_broadcast(&u->asked);
}

void unwinder_execed(struct unwinder *u, pid_t pid, uint64_t time_ns)
{
	struct unwound *process;

	pthread_mutex_lock(&u->lock);
	process = find(u, pid);
	if (process && process->looked_ns <= time_ns)
		end_program(u, process);
	else if (process && process->python_ns <= time_ns)
		untell_python(u, process);
	pthread_mutex_unlock(&u->lock);
	unwinder_see(u, pid);
}

void unwinder_forget(struct unwinder *u, pid_t pid)
{
	struct unwound *process;

	LOCKED(&u->lock);
	process = find(u, pid);
	if (process) {
		end_program(u, process);
		process->gone = true;
	}
}

bool unwinder_wait(struct unwinder *u, uint64_t most_ns)
{
	struct timespec until = time_of(clock_now_ns() + most_ns);
	bool idle;

	LOCKED(&u->lock);
	while (!(idle = !u->looking && !u->dropping && !is_asked(u))) {
		if (pthread_cond_timedwait(&u->done, &u->lock, &until))
			break;
	}
	return idle;
}

const struct python_layout *unwinder_python(struct unwinder *u, pid_t pid)
{
	struct unwound *process;

	LOCKED(&u->lock);
	process = find(u, pid);
	return process ? process->python : NULL;
}

void unwinder_figures(struct unwinder *u, struct unwinder_figures *figures)
{
	struct unwound *process, *next;

	LOCKED(&u->lock);
	*figures = u->figures;
	HASH_ITER (hh, u->processes, process, next)
		figures->unknown_python += process->python_unknown;
	if (!u->looking && !u->dropping)
		code_tables_figures(u->tables, &figures->code);
}
