/* SPDX-License-Identifier: MIT */
/*
 * The inside of inside.h: inside.c (opening, turns, the end), inside_process.c (how a process gets
 * its functions diverted), inside_ends.c (how they are put back), inside_modules.c (what is
 * diverted of a module), inside_records.c (what agents record, and which of the programs' records
 * that replaces).
 */
#ifndef CUSCOPE_CAPTURE_INSIDE_INSIDE_PRIVATE_H
#define CUSCOPE_CAPTURE_INSIDE_INSIDE_PRIVATE_H

#include <uthash.h>

#include "agent/agents.h"
#include "agent/probe_records.h"
#include "agent/tick_clock.h"
#include "capture/call_queue.h"
#include "capture/gpu/gpu_targets.h"
#include "capture/inside/inside.h"
#include "capture/tids.h"
#include "divert/divert.h"

#define INSIDE_TAKE_NS     50000000ull /* until entries are tried to be put back again */
#define INSIDE_MODULES_MAX 64          /* of a process, each time that one is loaded anew as well */
#define INSIDE_BITS        64 /* of the programs' map: modules that they can tell apart, from 1 on */
#define INSIDE_LOOKED_AT   24 /* bytes of an entry, of which some are a jump */

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
	int request; /* to the agent, under way */
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
	bool launches_on;
	/* once it is diverted */
	uint64_t since_ns, until_ns; /* calls that began between are the agent's, */
	uint8_t *told;               /* those of these functions, a bit by number of the hook */
	uint32_t first_id, n_ids;
	uint32_t n_diverted, n_refused;
	uint64_t check_at; /* an entry that was written; 0: none was */
	struct inside_module *next;
};

/* A process that has an agent, or had one. */
struct inside_process {
	struct inside *inside;
	uint32_t pid;
	bool works;                 /* CUDA: children that are forked before may use it, too */
	bool ready;                 /* its agent records */
	bool nesting;               /* the programs tell of the begins of calls */
	bool kept;                  /* told that it keeps its probes */
	bool taking;                /* its entries are being put back */
	bool given_up;              /* they could not be */
	uint32_t comings;           /* of its agent, in this program */
	uint64_t take_ns;           /* when to try to take them back */
	uint64_t asked_ns;          /* when a change was asked for: it is made later */
	uint64_t since_ns, came_ns; /* of its agent: no record is older; when it was ready */
	uint64_t last_ns;           /* of the last call that it told of */
	uint64_t ended_ns;          /* it ended, and the process goes on; 0: not, or that is told */
	char *ended_why;
	uint64_t thunks;
	uint32_t thunk_bytes, slots, n_slots; /* n_slots: all before it were set */
	struct inside_area *areas;
	size_t n_areas;
	uint64_t *cookies; /* by slot */
	struct probe_records *records;
	struct inside_module *modules, *current; /* the one that something is under way of */
	size_t n_modules;
	UT_hash_handle hh;
};

struct inside {
	struct inside_options options;
	struct divert *divert;
	bool divert_gone;
	struct agents *agents;
	bool own_agents;
	struct gpu_targets *targets; /* of its own agents */
	struct tids *tids;
	struct tick_clock *ticks; /* NULL: agents record ns */
	struct call_queue *queue;
	struct inside_process *processes, *recent;
	struct inside_thread *threads;            /* that are in calls which probes tell of */
	const struct module *bit_of[INSIDE_BITS]; /* 0 is none's */
	pid_t command;
	struct hold *hold;
	uint64_t begin_ns, now_ns, name_offset;
	bool stopping, agents_told;
	struct inside_away *away; /* by module */
	struct inside_sweep *sweep;
	struct inside_child *children;
	struct inside_met *met; /* threads that were told of */
	uint64_t lost_records;
	/* for the end */
	uint64_t bad_records;
	uint64_t calls;
	uint32_t n_functions, n_processes, n_told, n_untaken;
	uint64_t longest_stop_ns;
	const struct module *told_refused[INSIDE_BITS]; /* modules whose refusals were told */
};

void inside_notice(struct inside *inside, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

uint64_t inside_clock_ns(void); /* CLOCK_MONOTONIC */

/* ---- processes ------------------------------------------------------------------------------ */

struct inside_process *inside_process_find(struct inside *inside, uint32_t pid);
struct inside_process *inside_process_get(struct inside *inside, uint32_t pid);
void inside_process_drop(struct inside *inside, struct inside_process *process);

/* It keeps its probes: said once. */
void inside_process_keeps(struct inside_process *process, const char *why);

/* One that ends has none any more. */
bool inside_process_has_memory(uint32_t pid);

/* Nothing of a module is under way any more: it has its probes, for now or for good. */
void inside_module_give_up(struct inside_module *at, const char *why);

/* What cuscope holds by ptrace nobody else can stop. Whether its threads are free now. */
bool inside_process_let_go(struct inside_process *process);
void inside_process_hold_again(struct inside_process *process);

/* ---- ends (inside_ends.c) ------------------------------------------------------------------- */

bool inside_process_is_diverted(const struct inside_process *process);

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

/* Which functions, and by which plan. 0, or a negative errno: then it keeps its probes, but for
 * -EINPROGRESS, which is to be asked again soon. */
int inside_module_look(struct inside_module *at, struct divert_need *need, struct err *err);

/* Slots of its functions from `first` on; NULL where the process has too few. The caller frees. */
struct agent_slot *inside_module_slots(struct inside_module *at, uint32_t first, size_t *n);

uint32_t inside_module_movable(const struct inside_module *at); /* how many that will be */

/* It is diverted since then, but for what was refused. */
void inside_module_diverted(struct inside_module *at, const struct divert_result *result);

/* Whether an agent tells of a function's calls now. */
bool inside_module_tells(const struct inside_module *at, const struct hook *hook);

/* Whether its entries still lead to the agent. */
bool inside_module_is_there(const struct inside_module *at);

/* It is not diverted any more, or never will be. */
void inside_module_left(struct inside_module *at, uint64_t until_ns);
void inside_module_keeps(struct inside_module *at, const char *why);
void inside_module_free(struct inside_module *at);

/* Tells the programs which calls of the process they can leave alone; and that these are none. */
void inside_flag(struct inside_process *process);
void inside_unflag(struct inside_process *process);

/* ---- nesting (inside_nesting.c) ------------------------------------------------------------- */

/* Before the first function of a process is diverted: the programs tell of the begins of calls. */
void inside_nesting_begins(struct inside_process *process);
void inside_nesting_forget(struct inside *inside, uint32_t pid); /* 0: of all */

/* ---- probes that are not needed (inside_away.c) ---------------------------------------------- */

void inside_away_turn(struct inside *inside);
void inside_away_forked(struct inside *inside, uint32_t parent, uint32_t child, uint64_t time_ns);

/* It ended, executes another program, or loads a module that its parent had not loaded. */
void inside_away_no_child(struct inside *inside, uint32_t pid);

/* Of modules that are diverted in the process: now. */
void inside_away_put_back(struct inside *inside, const struct inside_process *process);
void inside_away_stop(struct inside *inside);
void inside_away_free(struct inside *inside);

/* ---- threads (inside_threads.c) -------------------------------------------------------------- */

void inside_threads_forget(struct inside *inside, uint32_t pid); /* 0: all */

/* ---- records -------------------------------------------------------------------------------- */

struct probe_records *inside_records_new(struct inside_process *process);

#endif
