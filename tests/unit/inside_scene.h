/* SPDX-License-Identifier: MIT */
/*
 * Recording inside of a process, with an agent, a divert and programs that are made up: this file
 * stands in for src/agent/agents.c, src/divert/divert.c and parts of src/probe.
 */
#ifndef TESTS_UNIT_INSIDE_SCENE_H
#define TESTS_UNIT_INSIDE_SCENE_H

#include "unit.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "agent/agents.h"
#include "capture/inside/inside.h"
#include "divert/divert.h"
#include "probe/hold.h"
#include "probe/maps.h"
#include "probe/helper.h"

#define MS(n)   ((uint64_t)(n)*1000000)
#define START   MS(1000)
#define PROCESS ((uint32_t)getpid()) /* threads are looked up in /proc */
#define TEXT    0x7f0000000000ull    /* where the module is mapped */
#define AREA    0x7f0000800000ull
#define THUNKS  0x7f0001000000ull
#define HOOKS   4

enum { REFUSED = 2, LAUNCH = 3 }; /* of the hooks */

static struct hook hooks[HOOKS];
static struct module module = { .dev = 5,
	                        .inode = 7,
	                        .alike = 1,
	                        .path = (char *)"/lib/libcuda.so.1",
	                        .name = "libcuda.so.1",
	                        .hooks = hooks,
	                        .has = { [LAYER_DRIVER] = true },
	                        .n_hooks = HOOKS };
/* Of the runtime, and not hooked but for tests that have it. */
static struct hook runtime_hook = { .id = 200, .entry = 0x1100, .address = 0x100, .size = 64 };
static struct module runtime_module = { .dev = 5,
	                                .inode = 8,
	                                .alike = 2,
	                                .path = (char *)"/lib/libcudart.so.13",
	                                .name = "libcudart.so.13",
	                                .hooks = &runtime_hook,
	                                .has = { [LAYER_RUNTIME] = true },
	                                .n_hooks = 1 };
static bool has_runtime;
static struct wire_state programs_memory;
static uint64_t flagged; /* what the programs were told of the process */
static char notices[2048], missed[512];
static bool mapped, jumps_there;

/* ---- agents -------------------------------------------------------------------------------- */

static struct agents {
	struct agents_options options;
	pid_t entered;
	bool stopped;
	struct agents_lost lost;
	int request;
	uint64_t near;
	uint32_t bytes;
	struct agent_slot slots[HOOKS];
	size_t n_slots;
	enum agent_slot_does turned;
	unsigned turns, reads;
	uint32_t turned_first, turned_n;
	pid_t goes_on;
	bool refuses; /* to turn slots */
} fake;

int agents_new(const struct agents_options *options, struct agents **agents, struct err *err)
{
	memset(&fake, 0, sizeof(fake));
	fake.options = *options;
	*agents = &fake;
	return 0;
}

void agents_free(struct agents *agents)
{
}

int agents_environment(struct agents *agents, char *const **environment, struct err *err)
{
	return -ENOENT;
}

void agents_enter(struct agents *agents, pid_t pid)
{
	agents->entered = pid;
}

int agents_fd(const struct agents *agents)
{
	return -1;
}

void agents_turn(struct agents *agents, uint64_t now_ns)
{
	agents->reads++;
}

void agents_turn_of(struct agents *agents, pid_t pid, uint64_t now_ns)
{
	agents->reads++;
}

void agents_gone(struct agents *agents, pid_t pid)
{
}

void agents_stop(struct agents *agents)
{
	agents->stopped = true;
	agents->reads++;
}

bool agents_stopped(const struct agents *agents)
{
	return agents->stopped;
}

void agents_abandon(struct agents *agents)
{
}

void agents_lost(const struct agents *agents, struct agents_lost *lost)
{
	*lost = agents->lost;
}

int agents_probes_area(struct agents *agents, pid_t pid, uint64_t near, uint32_t bytes)
{
	agents->near = near;
	agents->bytes = bytes;
	return ++agents->request;
}

int agents_probes_set(struct agents *agents, pid_t pid, const struct agent_slot *slots, size_t n)
{
	assert_true(n <= HOOKS);
	memcpy(agents->slots, slots, n * sizeof(*slots));
	agents->n_slots = n;
	return ++agents->request;
}

int agents_probes_turn(struct agents *agents, pid_t pid, uint32_t first, uint32_t n,
                       enum agent_slot_does does)
{
	if (agents->refuses)
		return -ENOBUFS;
	agents->turned = does;
	agents->turns++;
	agents->turned_first = first;
	agents->turned_n = n;
	return ++agents->request;
}

/* What the agent says it has counted, of whichever slot; false: there is none. */
static uint64_t says_counted;
static bool says_no_counts;

bool agents_probes_counted(const struct agents *agents, pid_t pid, uint32_t slot, uint64_t *calls)
{
	*calls = says_counted;
	return !says_no_counts;
}

const char *agents_stage(const struct agents *agents, pid_t pid)
{
	return "its agent had not answered yet";
}

/* What children of fork have called, by slot, in memory that is asked for once. */
static uint64_t says_children[AGENT_SLOTS_MOST];
static unsigned children_maps;

const uint64_t *agents_probes_children(const struct agents *agents, pid_t pid)
{
	children_maps++;
	return says_children;
}

void agents_probes_children_free(const uint64_t *children)
{
	children_maps -= children != NULL;
}

void agents_probes_go(struct agents *agents, pid_t pid)
{
	agents->goes_on = pid;
}

void agents_probes_names(struct agents *agents, uint64_t offset)
{
}

/* ---- divert -------------------------------------------------------------------------------- */

static struct divert {
	divert_done_fn done;
	void *data;
	bool puts, takes;
	unsigned n_puts, n_freed;
	uint64_t area, thunks[HOOKS];
	size_t count;
	pid_t gone, forked;
	uint64_t put_ns, back_ns; /* cuts that are not answered; 0: none is known */
	bool unknown;             /* what the first one changed */
} changes;

static char plan_memory;
#define PLAN ((struct divert_plan *)&plan_memory)

int divert_new(divert_done_fn done, void *data, struct divert **divert, struct err *err)
{
	memset(&changes, 0, sizeof(changes));
	changes.done = done;
	changes.data = data;
	*divert = &changes;
	return 0;
}

void divert_free(struct divert *divert)
{
}

int divert_fd(const struct divert *divert)
{
	return -1;
}

int divert_turn(struct divert *divert, struct err *err)
{
	return 0;
}

static bool probes_meet; /* calls before the jumps do */

/* As if another thread looked at each file for `look_for` times that it is asked. */
static int look_for;

static bool plans_are_taken; /* its user has as many as there may be */

int divert_may_look(struct divert *divert, pid_t pid, const struct divert_module *of,
                    const struct divert_function *functions, size_t count,
                    struct divert_plan **plan, struct err *err)
{
	if (plans_are_taken)
		return err_set(err, ENOSPC, "all plans are taken");
	*plan = PLAN;
	return look_for-- <= 0 ? 0 : -EINPROGRESS;
}

int divert_look(struct divert *divert, pid_t pid, const struct divert_module *of,
                struct divert_function *functions, size_t count, struct divert_need *need,
                struct divert_plan **plan, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		bool refused = functions[i].offset == hooks[REFUSED].entry;

		functions[i].refusal = refused ? ENTRY_JUMPED_INTO : ENTRY_MOVABLE;
		functions[i].original = (uint32_t)(64 * i);
		functions[i].met = probes_meet;
	}
	divert->count = count;
	*need = (struct divert_need){ TEXT, TEXT + 0x2000, 4096, TEXT + functions[0].offset };
	return 0;
}

void divert_plan_free(struct divert_plan *plan)
{
	changes.n_freed += plan != NULL;
}

int divert_put(struct divert *divert, struct divert_plan *plan, uint64_t area,
               const uint64_t *thunks, struct err *err)
{
	divert->puts = true;
	divert->n_puts++;
	divert->area = area;
	memcpy(divert->thunks, thunks, divert->count * sizeof(*thunks));
	return 0;
}

int divert_take_back(struct divert *divert, pid_t pid, struct err *err)
{
	divert->takes = true;
	return 0;
}

void divert_gone(struct divert *divert, pid_t pid)
{
	divert->gone = pid;
}

bool divert_is_put(const struct divert *divert, struct divert_plan *plan, uint64_t begin_ns,
                   struct divert_result *result)
{
	static uint8_t refusals[HOOKS];

	refusals[REFUSED] = ENTRY_JUMPED_INTO;
	*result = (struct divert_result){ .pid = (pid_t)PROCESS,
		                          .plan = plan,
		                          .rc = divert->unknown ? -ETIMEDOUT : 0,
		                          .since_ns = divert->put_ns,
		                          .count = (uint32_t)divert->count,
		                          .refusals = refusals };
	return divert->put_ns && begin_ns >= divert->put_ns;
}

bool divert_is_taken_back(const struct divert *divert, pid_t pid, uint64_t begin_ns)
{
	return divert->back_ns && begin_ns >= divert->back_ns;
}

uint64_t divert_refused_children(const struct divert *divert)
{
	return 0;
}

void divert_forget(struct divert *divert, pid_t pid)
{
	divert->gone = pid;
}

void divert_forked(struct divert *divert, pid_t parent, pid_t child)
{
	divert->forked = child;
}

int hold_let_go(struct hold *hold, pid_t pid)
{
	return 0;
}

void hold_take(struct hold *hold, pid_t pid)
{
}

/* ---- what else a capture has --------------------------------------------------------------- */

struct wire_state *programs_state(struct programs *programs)
{
	return &programs_memory;
}

void programs_inside_set(struct programs *programs, pid_t tgid, uint64_t modules)
{
	flagged = modules;
}

static struct wire_call open_call; /* that a thread is in; its type is 0: none */

static bool in_call; /* its threads are */

bool programs_thread_in_call(const struct programs *programs, pid_t tid, uint64_t *begin_ns)
{
	*begin_ns = START;
	return in_call;
}

void programs_open_calls(struct programs *programs, programs_record_fn each, void *data)
{
	if (open_call.head.type)
		each(data, &open_call.head, sizeof(open_call));
}

void programs_stop_holding_one(struct programs *programs, pid_t tgid)
{
}

int programs_target_add(struct programs *programs, pid_t tgid, uint32_t flags)
{
	return 0;
}

bool programs_target_has(struct programs *programs, pid_t tgid)
{
	return tgid == (pid_t)PROCESS;
}

size_t modules_count(const struct modules *modules)
{
	return 1 + has_runtime;
}

struct module *modules_at(const struct modules *modules, size_t index)
{
	return index ? &runtime_module : &module;
}

/* Other files of the same functions, each one to the kernel; their hooks have other numbers. */
#define TWIN  300
#define TWINS 12
static struct hook twin_hooks[TWINS][HOOKS];
static struct module twins[TWINS];

static inline void make_twins(uint32_t alike)
{
	for (size_t i = 0; i < TWINS; i++)
		twins[i] = (struct module){ .hooks = twin_hooks[i],
			                    .n_hooks = HOOKS,
			                    .alike = alike,
			                    .attached = true,
			                    .inode = 100 + i };
}

bool hook_proves_driver(const struct hook *hook)
{
	return hook->name && !strcmp(hook->name, "cuInit");
}

const struct hook *modules_hook(const struct modules *modules, uint16_t id,
                                const struct module **of)
{
	size_t i = (size_t)(id - TWIN) / HOOKS;

	if (of)
		*of = id >= TWIN ? &twins[i] : &module;
	return id >= TWIN ? &twin_hooks[i][(id - TWIN) % HOOKS] : &hooks[id - hooks[0].id];
}

void modules_lock(struct modules *modules)
{
}

void modules_unlock(struct modules *modules)
{
}

static uint64_t told_counted, told_counted_of; /* calls, and of how many processes */
static struct modules_counted told_all;

void modules_counted(struct modules *modules, size_t *slot, const char *name, const char *lib,
                     const struct modules_counted *counted)
{
	told_counted = counted->calls;
	told_counted_of = counted->processes;
	told_all = *counted;
}

void modules_miss(struct modules *modules, enum miss_kind kind, const char *name, const char *lib,
                  uint32_t pid, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(missed, sizeof(missed), fmt, ap);
	va_end(ap);
}

/* ---- probes that go, and a second process that may have the module mapped ------------------ */

#define OTHER (PROCESS + 1)

static struct {
	bool other;        /* it is a target */
	bool other_mapped; /* and has the module */
	bool refuses;      /* the module's probes are to stay */
	size_t watched, back, n_moved;
	bool moved[HOOKS];
} probes;

uint32_t *programs_targets(struct programs *programs, size_t *n)
{
	uint32_t *pids = calloc(2, sizeof(*pids));

	pids[0] = PROCESS;
	pids[1] = OTHER;
	*n = probes.other ? 2 : 1;
	return pids;
}

const struct module *modules_of_mapping(struct modules *modules, const struct mapping *mapping)
{
	return mapping->inode == module.inode ? &module : &runtime_module;
}

bool modules_watch(struct modules *modules, struct module *of)
{
	if (probes.refuses)
		return false;
	probes.watched++;
	of->probes = PROBES_WATCHED;
	return true;
}

bool modules_put_back(struct modules *modules, struct module *of)
{
	bool was_away = of->probes == PROBES_AWAY;

	probes.back += was_away;
	of->probes = PROBES_THERE;
	return was_away;
}

int module_move_hooks(struct module *of, bool (*stays)(void *data, const struct hook *hook),
                      void *data, struct err *err)
{
	probes.n_moved = 0;
	for (size_t i = 0; i < HOOKS; i++) {
		probes.moved[i] = stays(data, &hooks[i]);
		probes.n_moved += probes.moved[i];
		hooks[i].moved |= probes.moved[i];
	}
	return 0;
}

void module_take_away(struct module *of)
{
	of->probes = PROBES_AWAY;
}

uint64_t hook_cookie(const struct hook *hook)
{
	return cookie_with_hook(hook->id) | cookie_with_words(WIRE_AT_STACK);
}

enum wire_stack_kind hook_stack_kind(const struct hook *hook)
{
	return hook == &hooks[1] ? STACK_OF_COPY : STACK_OF_NOTHING;
}

const struct process *pipeline_process(struct pipeline *pipeline, uint32_t pid)
{
	return NULL;
}

static unsigned maps_listed;
static uint64_t maps_take_ns; /* of a processor */

int __wrap_maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                     struct err *err);
int __wrap_maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                     struct err *err)
{
	struct mapping mapping = { .start = TEXT,
		                   .end = TEXT + 0x2000,
		                   .offset = 0x1000,
		                   .dev = 5,
		                   .inode = 7,
		                   .path = "/lib/libcuda.so.1" };
	bool there = pid == (pid_t)OTHER ? probes.other_mapped : mapped;
	uint64_t until_ns = helper_busy_ns() + maps_take_ns;
	int r = there ? each(&mapping, data) : 0;

	maps_listed++;
	while (helper_busy_ns() < until_ns)
		;
	mapping.inode = runtime_module.inode;
	return there && has_runtime && !r ? each(&mapping, data) : r;
}

static uint64_t person; /* whose all processes are */
uint64_t __wrap_person_of_process(pid_t pid);
uint64_t __wrap_person_of_process(pid_t pid)
{
	return person;
}

bool __wrap_tick_clock_is_usable(void);
bool __wrap_tick_clock_is_usable(void)
{
	return false;
}

bool __wrap_helper_memory(pid_t pid, uint64_t address, void *to, size_t bytes);
bool __wrap_helper_string(pid_t pid, uint64_t address, char *to, size_t size);

static uint64_t memory_takes_ns; /* of a processor */

/* A jump to the area behind a push that has a breakpoint. */
bool __wrap_helper_memory(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	uint8_t code[64] = { 0xcc, 0xe9 };
	int32_t distance = (int32_t)(AREA + 32 - (address + 6));

	uint64_t until_ns = helper_busy_ns() + memory_takes_ns;

	while (helper_busy_ns() < until_ns)
		;
	memcpy(code + 2, &distance, sizeof(distance));
	if (!jumps_there)
		code[1] = 0x90;
	memcpy(to, code, bytes);
	return mapped;
}

bool __wrap_helper_string(pid_t pid, uint64_t address, char *to, size_t size)
{
	return false;
}

#endif
