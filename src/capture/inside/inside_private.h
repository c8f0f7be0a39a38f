/* SPDX-License-Identifier: MIT */
/*
 * The inside of inside.h: inside.c (opening, turns, the end), inside_process.c (how a process gets
 * its functions diverted), inside_records.c (how they are put back), inside_modules.c (what is to
 * be diverted of a module), inside_forks.c (and what is), inside_records.c (what agents record, and
 * which of the programs' records that replaces), inside_files.c (where alike files are hooked),
 * inside_counts.c (what is only counted), inside_forks.c (what children call).
 */
#pragma once

#include <sys/queue.h>

#include "agent/agents.h"
#include "agent/agent_probes.h"
#include "agent/tick_clock.h"
#include "base/hash.h"
#include "base/quota.h"
#include "capture/call_queue.h"
#include "capture/gpu/gpu_targets.h"
#include "capture/inside/inside.h"
#include "capture/tids.h"
#include "divert/divert.h"

#define INSIDE_TAKE_NS     50000000ull /* until entries are tried to be put back again */
#define INSIDE_MODULES_MAX 64          /* of a process, each time that one is loaded anew as well */
#define INSIDE_BITS        64 /* of the programs' map: modules that they can tell apart, from 1 on */
#define MET_RECENT         64
#define INSIDE_SLOTS_OF    1024 /* a power of two: lists of threads by their process */
#define INSIDE_LOOKED_AT   24   /* bytes of an entry, of which some are a jump */

enum inside_state {
	INSIDE_WANTED, /* from due_ns on */
	INSIDE_AREA,   /* these three: an answer is waited for */
	INSIDE_SLOTS,
	INSIDE_PUTTING,
	INSIDE_DIVERTED,
	INSIDE_KEPT, /* its probes stay, for good */
	INSIDE_LEFT, /* it was diverted, until until_ns */
};

/* Memory for code in a process that an earlier session left there, and its slots. What it would be
 * filled with anew is the same, as long as the same functions are diverted. */
struct inside_area {
	uint64_t address;
	size_t bytes;
	uint32_t first_slot, n_slots;
	bool used; /* tried, or taken */
};

/* A module of a process. */
struct inside_module {
	struct inside_process *process;
	const struct module *module;
	enum inside_state state;
	uint64_t due_ns;
	unsigned tries;
	char why[160]; /* the last one was in vain */
	int request;   /* to the agent, under way */
	/* what divert_look was asked: by address; until it is diverted */
	struct divert_plan *plan;
	struct divert_function *functions;
	const struct hook **hooks;
	uint64_t *thunks;
	size_t count;
	struct divert_need need;
	uint64_t load; /* what is added to linked addresses */
	uint64_t area;
	size_t area_bytes;
	bool again; /* it is an earlier session's */
	uint32_t first_slot, n_slots;
	uint32_t first_launch, n_launches; /* slots of the runtime's launches, the last of these */
	uint32_t n_refusable;              /* of these, of kernels */
	bool launches_on;                  /* or those alone are told that it refuses */
	bool leads_on; /* its calls may lead to functions of other modules that keep their probes */
	bool begins;   /* the agent tells of begins: or of its own module */
	/* once it is diverted */
	uint64_t since_ns, until_ns; /* calls that began between are the agent's, */
	uint8_t *told;               /* those of these functions, a bit by number of the hook, */
	uint8_t *met;                /* and of these a probe lies before the jump */
	uint32_t first_id, n_ids;
	uint32_t n_diverted, n_refused;
	uint64_t check_at; /* an entry that was written; 0: none was */
	bool absent;       /* it is another container's file of the same image */
	bool unknown;      /* who was to divert it was ended, and left nobody knows what */
	struct inside_module *next;
};

/* What a process has mapped; inside_files.c. */
struct inside_file {
	uint64_t dev, inode;
};

struct inside_files {
	enum { FILES_STALE, FILES_LISTED, FILES_UNKNOWN } state;
	struct inside_file *list; /* sorted */
	size_t n;
	uint64_t again_ns; /* FILES_UNKNOWN: when to try it again */
	bool told;         /* that calls may be told twice */
};

/* A process that has an agent, or had one. */
struct inside_process {
	struct inside *inside;
	uint32_t pid;
	uint64_t owner;             /* probe/person.h, when its agent came */
	bool works;                 /* CUDA: children that are forked before may use it, too */
	bool ready;                 /* its agent records */
	bool waits;                 /* in cuInit, until what can be diverted is */
	bool nesting;               /* the programs tell of the begins of calls */
	bool walks;                 /* its agent is probed for stacks: inside_options.walks, */
	bool walks_known;           /* which was not to be waited for any longer */
	bool kept;                  /* told that it keeps its probes */
	bool taking;                /* its entries are being put back */
	bool given_up;              /* they could not be */
	bool unseen;                /* told that it is not known whether its modules are there */
	uint32_t comings;           /* of its agent, in this program */
	uint32_t n_told;            /* sentences of it */
	uint64_t take_ns;           /* when to try to take them back */
	uint64_t since_ns, came_ns; /* of its agent: no record is older; when it was ready */
	uint64_t gone_ns;           /* when that had ended, if it is not ready */
	uint64_t last_ns;           /* of the last call that it told of */
	uint64_t ended_ns;          /* it ended, and the process goes on; 0: not, or that is told */
	char *ended_why;
	uint64_t thunks;
	uint32_t thunk_bytes, slots, n_slots; /* n_slots: all before it were set */
	struct inside_area *areas;
	size_t n_areas;
	struct inside_files files;
	uint64_t *cookies; /* by slot */
	struct probe_records *records;
	struct inside_counts *counts;            /* NULL: nothing is counted */
	struct inside_forks *forks;              /* NULL: children are no targets */
	struct inside_module *modules, *current; /* the one that something is under way of */
	size_t n_modules;
	UT_hash_handle hh;
};

/* A thread that was told of. */
struct inside_met {
	uint32_t tid, pid;
	LIST_ENTRY(inside_met) in_slot;
	UT_hash_handle hh;
};

LIST_HEAD(inside_mets, inside_met);
LIST_HEAD(inside_threads, inside_thread);

struct inside {
	struct inside_options options;
	struct divert *divert;
	bool divert_gone;
	bool unsure; /* whose calls are is not known of some process: inside_is_sure */
	struct agents *agents;
	bool own_agents;
	struct gpu_targets *targets; /* of its own agents */
	struct tids *tids;
	struct tick_clock *ticks; /* NULL: agents record ns */
	struct call_queue *queue;
	struct inside_process *processes, *recent;
	struct inside_thread *threads; /* that are in calls which probes tell of */
	struct quota nesting;          /* they, by owner */
	struct inside_threads threads_of[INSIDE_SLOTS_OF]; /* the same by process */
	const struct module *bit_of[INSIDE_BITS];          /* 0 is none's */
	pid_t command;
	struct hold *hold;
	uint64_t begin_ns, now_ns, name_offset;
	bool stopping, agents_told;
	struct inside_away *away; /* by module */
	struct inside_sweep *sweep;
	struct inside_child *children;
	struct inside_met *met;                     /* threads that were told of */
	struct inside_met *met_recent[MET_RECENT];  /* by tid */
	struct inside_mets met_of[INSIDE_SLOTS_OF]; /* by process */
	struct inside_total *totals;                /* of calls that were counted, by function */
	struct inside_forks *orphans; /* of processes that ended, whose children may go on */
	struct quota of_orphans, of_children;
	struct inside_counted *counted_left; /* of processes that ended */
	size_t n_counted_left;
	uint64_t counted_dropped, counted_lost; /* there was no room; and who asked lacks them */
	uint64_t forks_ns;                      /* when they were looked at last */
	bool news_of_children;
	uint64_t lost_records;
	/* for the end */
	uint64_t bad_records;
	struct correlate_span told; /* the last call that was taken */
	uint64_t calls, counted, in_children;
	uint32_t n_functions, n_processes, n_told, n_untaken, n_counting;
	uint64_t longest_stop_ns;
	const struct module *told_refused[INSIDE_BITS]; /* modules whose refusals were told */
};

void inside_notice(struct inside *inside, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* What users are to know, also where they have not asked for calls to be recorded inside. */
void inside_warn(struct inside *inside, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- processes ------------------------------------------------------------------------------ */

struct inside_process *inside_process_find(struct inside *inside, uint32_t pid);
struct inside_process *inside_process_get(struct inside *inside, uint32_t pid);
void inside_process_drop(struct inside *inside, struct inside_process *process);

/* Another sentence of it may be said: there is a bound for a process, and one, most, for all. */
bool inside_process_tells(struct inside_process *process, uint32_t most);

/* It keeps its probes: said once. */
void inside_process_keeps(struct inside_process *process, const char *why);

/* One that ends has none any more. */
bool inside_process_has_memory(uint32_t pid);

/* What still has its probes when a trace ends, and why. */
void inside_tell_waiting(struct inside *inside);

/* Nothing of a module is under way any more: it has its probes, for now or for good. */
void inside_module_give_up(struct inside_module *at, const char *why);

/* What cuscope holds by ptrace nobody else can stop. Whether its threads are free now. */
bool inside_process_let_go(struct inside_process *process);
void inside_process_hold_again(struct inside_process *process);

/* ---- ends (inside_records.c) -------------------------------------------------------------------
 */

bool inside_process_is_diverted(const struct inside_process *process);

/* Since the trace began: for sentences. */
double inside_ms(const struct inside *inside, uint64_t time_ns);

/* Whether it goes on: one that has ended has none. */
bool inside_process_has_memory(uint32_t pid);

/* Asks for its entries to be put back, if any are not and that is not under way. */
void inside_process_take_back(struct inside_process *process);

/* Its agent records no more; why may be NULL. */
void inside_process_agent_ended(struct inside_process *process, const char *why);

/* After that, where there was nothing to put back. */
void inside_process_end_untaken(struct inside_process *process);

/* Its agent ended while it went on: calls until then may be missing. Told once. */
void inside_process_tell_gap(struct inside_process *process, uint64_t until_ns);

/* So many functions were not put back, as they are neither as they were written nor as before. */
void inside_process_tell_changed(struct inside_process *process, uint64_t since_ns, uint32_t n);

/* Which of its entries were "diverted" or "put back" since then, nobody knows. */
void inside_process_tell_unknown(struct inside_process *process, uint64_t since_ns,
                                 const char *what);

/* Whether nothing of it is diverted any more, or can be put back. */
bool inside_process_is_out(const struct inside_process *process);

/* What is due: of its modules, one after the other, or at the end. */
void inside_process_turn(struct inside_process *process);

void inside_on_news(void *inside, uint32_t pid, const struct agent_probes_answer *answer);
void inside_on_diverted(void *inside, const struct divert_result *result);

/* ---- modules -------------------------------------------------------------------------------- */

/* The hooked module of a process is to be diverted, if it is mapped there and was not met yet. */
void inside_module_want(struct inside_process *process, const struct module *module);

/* All that the process has mapped. */
void inside_modules_find(struct inside_process *process);

/* What is due: whether all is known of who tells of calls; lists of files. */
void inside_records_turn(struct inside *inside);

/* Which functions, and by which plan. 0, or a negative errno: then it keeps its probes, but for
 * -EINPROGRESS, which is to be asked again soon. */
int inside_module_look(struct inside_module *at, struct divert_need *need, struct err *err);

/* Slots of its functions from `first` on; NULL where the process has too few. The caller frees. */
struct agent_slot *inside_module_slots(struct inside_module *at, uint32_t first, size_t *n);

uint32_t inside_module_movable(const struct inside_module *at); /* how many that will be */

/* It is diverted since then, but for what was refused: by the answer, and before that. */
void inside_module_diverted(struct inside_module *at, const struct divert_result *result);
void inside_module_cut(struct inside_module *at, const struct divert_result *result);

/* Or what is, nobody knows: probes alone tell of its calls, as far as these come to them. */
void inside_module_unknown(struct inside_module *at, uint64_t since_ns);

/* Whether an agent tells of a function's calls now. */
bool inside_module_tells(const struct inside_module *at, const struct hook *hook);

/* The process has mapped something: of a module that is gone calls are the probes' from then on. */
void inside_modules_still_there(struct inside_process *process, uint64_t then_ns);

/* It is not diverted any more, or never will be. */
void inside_module_left(struct inside_module *at, uint64_t until_ns);
void inside_module_keeps(struct inside_module *at, const char *why);
void inside_module_free(struct inside_module *at);

/* What it was asked for: once it is diverted, or will not be. */
void inside_module_forget_plan(struct inside_module *at);

/* Tells the programs which calls of the process they can leave alone; and that these are none. */
void inside_flag(struct inside_process *process);
void inside_unflag(struct inside_process *process);

/* ---- files (inside_files.c) ------------------------------------------------------------------ */

/* The number of the hook that a module has for a call which the probe of an alike file told of;
 * HOOK_NO_ID: it has none, or the process may have mapped that file as well. */
uint32_t inside_own_hook(struct inside_module *at, uint32_t id);

void inside_files_turn(struct inside *inside);
void inside_files_forget(struct inside_process *process); /* it has mapped another */
void inside_files_free(struct inside_process *process);

/* ---- nesting (inside_nesting.c) ------------------------------------------------------------- */

/* Before the first function of a process is diverted: the programs tell of the begins of calls. */
void inside_nesting_begins(struct inside_process *process);
void inside_nesting_forget(struct inside *inside, uint32_t pid);
void inside_nesting_free(struct inside *inside);

/* Its agent tells of no more ends. */
void inside_nesting_agent_ended(struct inside *inside, uint32_t pid);

/* Whether a call that the programs hold for open was left, by what agents told since. */
bool inside_was_left(const struct inside *inside, const struct wire_call *call);

/* ---- probes that are not needed (inside_away.c) ---------------------------------------------- */

void inside_away_turn(struct inside *inside);
/* Of modules that are diverted in the process: now. */
void inside_away_put_back(struct inside *inside, const struct inside_process *process);
void inside_away_stop(struct inside *inside);
void inside_away_free(struct inside *inside);

/* ---- threads (inside_nesting.c) -------------------------------------------------------------- */

/* Lately; asked for each call. */
static inline bool inside_was_met(const struct inside *inside, uint32_t tid, uint32_t pid)
{
	const struct inside_met *met = inside->met_recent[tid % MET_RECENT];

	return met && met->tid == tid && met->pid == pid;
}

/* ---- calls that are counted (inside_counts.c) ------------------------------------------------ */

struct inside_counts *inside_counts_new(struct inside_process *process);
void inside_counts_free(struct inside_process *process);
void inside_totals_free(struct inside *inside);

/* A slot is set, whose calls may be counted or not; a call of one was recorded. */
void inside_counts_slot(struct inside_process *process, uint32_t slot, const struct hook *hook,
                        const struct module *module, bool may);
void inside_counts_recorded(struct inside_process *process, uint32_t slot);

/* What is due; and what was counted so far, while its agent is there. */
void inside_counts_turn(struct inside_process *process);
void inside_counts_read(struct inside_process *process);

/* In children of a process, whose *total is NULL at first; and a call that a probe told of, too. */
struct inside_total;
void inside_total_add_children(struct inside *inside, struct inside_total **total,
                               const struct hook *hook, const struct module *module, uint64_t more);

void inside_total_told_child(struct inside *inside, const struct hook *hook,
                             const struct module *module);
void inside_totals_tell(struct inside *inside); /* with the modules' lock */

/* How many calls the machine can have made between; beyond that, nothing is believed. */
uint64_t inside_calls_most(uint64_t since_ns, uint64_t now_ns);

/* ---- calls of children (inside_forks.c) ------------------------------------------------------ */

/*
 * It was forked when CUDA worked in its parent, and has executed no program since. Of libraries
 * that were diverted by then its calls are counted (inside_forks.c); of others probes tell.
 */
struct inside_child {
	uint32_t pid;
	uint32_t root;  /* the process whose agent it was */
	uint64_t owner; /* of that: probe/person.h */
	uint64_t forked_ns;
	struct inside_forks *forks; /* what its calls are counted in; or NULL */
	UT_hash_handle hh;
};

struct inside_forks *inside_forks_new(struct inside_process *process);
void inside_forks_leave(struct inside_process *process); /* it ends, or has another program */
void inside_forks_init(struct inside *inside);
void inside_forks_free(struct inside *inside);
void inside_forks_tell(struct inside *inside); /* at the end, with the modules' lock */

/* A slot records. `met`: a kernel's probe is, before the jump. */
void inside_forks_slot(struct inside_process *process, uint32_t slot, const struct hook *hook,
                       bool met);

/* A process was forked, by now or then; or ended, or executes another program; or loads a module
 * that its parent had not loaded. */
void inside_forked_child(struct inside *inside, uint32_t parent, uint32_t child, uint64_t time_ns);
void inside_no_child(struct inside *inside, uint32_t pid);
void inside_child_loads(struct inside *inside, uint32_t pid);
void inside_children_forget(struct inside *inside); /* all */
const struct inside_child *inside_child_find(const struct inside *inside, uint32_t pid);

/* A probe told of a call, maybe of a child's. */
void inside_told_child(struct inside *inside, const struct wire_call *call, const struct hook *hook,
                       const struct module *module);

/* What was called so far. With the modules' lock. */
void inside_forks_read(struct inside *inside);
void inside_forks_turn(struct inside *inside);

/* ---- records -------------------------------------------------------------------------------- */

struct probe_records *inside_records_new(struct inside_process *process);
