// SPDX-License-Identifier: MIT
/*
 * Getters that a process calls all the time are counted in it, and not recorded one by one. Which
 * ones is decided by what recording costs: once all getters of a process take more than a hundredth
 * of one thread's time, those that are called most are counted, until half of that is left.
 *
 * A process's agent can say any number. One that is less than before, or that no machine could have
 * called, is not taken: the function is recorded again from then on, and what it says is left out.
 */
#include "capture/inside/inside_private.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define RECORD_NS   300.0 /* what a call that is recorded costs a program whose caches are full */
#define MOST_SHARE  0.01  /* of a thread, for all getters of a process that are recorded */
#define LEFT_SHARE  0.005
#define BACK_SHARE  0.001 /* that one may have which is recorded again */
#define INTERVAL_NS 250000000ull
#define FIRST_NS    50000000ull   /* a burst of getters is met soon */
#define BACK_NS     2000000000ull /* that it is called little until then; twice that each time, */
#define BACK_TIMES  5             /* so many times */
#define CALL_NS     1u            /* the least that a call can take of a CPU */
#define TOLD_MOST   8             /* sentences */
#define LEFT_MOST   4096          /* functions of processes that ended, until who asks has them */
#define SLACK_CALLS 1000000       /* by which the clocks of both sides may differ */

struct counted {
	uint32_t slot;
	const struct hook *hook;
	const struct module *module;
	struct inside_total *total; /* NULL: it was not counted yet */
	bool on, bad;
	uint64_t calls, shown;        /* counted so far; and when that was asked for last */
	uint64_t more;                /* and since the last interval began */
	uint64_t since_ns, little_ns; /* when it began to be counted; to be called little; 0: not */
	unsigned times;
};

struct inside_counts {
	struct counted *all; /* that may be counted, by slot */
	size_t n;
	uint32_t *at;       /* by slot: in `all`, from 1; 0: never counted */
	uint32_t *recorded; /* by slot, in this interval */
	uint64_t since_ns, read_ns;
	bool any; /* was recorded: an interval has begun */
};

/* Of one function, over all processes. */
struct inside_total {
	uint16_t hook;
	const char *name, *lib;
	struct modules_counted counted;
	uint64_t in_children, told_of_children; /* counted in them; and told of by probes all the
	                                         * same */
	size_t miss;
	UT_hash_handle hh;
};

struct inside_counts *inside_counts_new(struct inside_process *process)
{
	struct inside_counts *counts = xcalloc(1, sizeof(*counts));

	counts->at = xcalloc(process->slots, sizeof(*counts->at));
	counts->recorded = xcalloc(process->slots, sizeof(*counts->recorded));
	counts->read_ns = process->inside->now_ns;
	return counts;
}

/* Of a process that ends, for who has not asked yet. */
static void leave_counted(struct inside *inside, uint32_t pid, const struct inside_counts *counts)
{
	for (size_t i = 0; i < counts->n; i++) {
		const struct counted *at = &counts->all[i];

		if (at->calls == at->shown)
			continue;
		if (inside->n_counted_left == LEFT_MOST) {
			inside->counted_dropped++;
			continue;
		}
		inside->counted_left = vec_room(inside->counted_left, inside->n_counted_left,
		                                sizeof(*inside->counted_left));
		inside->counted_left[inside->n_counted_left++] = (struct inside_counted){
			.pid = pid, .hook = at->hook->id, .calls = at->calls - at->shown
		};
	}
}

void inside_counts_free(struct inside_process *process)
{
	struct inside_counts *counts = process->counts;

	process->counts = NULL;
	if (!counts)
		return;
	leave_counted(process->inside, process->pid, counts);
	free(counts->all);
	free(counts->at);
	free(counts->recorded);
	free(counts);
}

void inside_totals_free(struct inside *inside)
{
	MAP_FREE(inside->totals, free);
}

/*
 * Those only that the default leaves alone, and that say whether they failed. What cuscope learns
 * names from, or that something changed, is never one.
 */
static bool may_count(const struct hook *hook)
{
	return hook->group == HOOK_LITTLE && api_returns_status(hook->name) &&
	       (!hook->api || api_op(hook->api) == OP_NONE) && hook->plan.string == PLAN_NO_ARG &&
	       hook->plan.kernel == PLAN_NO_ARG && !hook->plan.forgets_kernels;
}

void inside_counts_slot(struct inside_process *process, uint32_t slot, const struct hook *hook,
                        const struct module *module, bool may)
{
	struct inside_counts *counts = process->counts;

	may = may && may_count(hook);
	if (!counts || slot >= process->slots)
		return;
	if (counts->at[slot]) { /* it was refused for what it was to be at first */
		counts->all[counts->at[slot] - 1] = (struct counted){
			.slot = slot, .hook = hook, .module = module, .bad = !may
		};
		return;
	}
	if (!may)
		return;
	counts->all = vec_room(counts->all, counts->n, sizeof(*counts->all));
	counts->all[counts->n++] = (struct counted){ .slot = slot, .hook = hook, .module = module };
	counts->at[slot] = (uint32_t)counts->n;
}

void inside_counts_recorded(struct inside_process *process, uint32_t slot)
{
	struct inside_counts *counts = process->counts;

	if (!counts || slot >= process->slots)
		return;
	counts->recorded[slot]++;
	if (!counts->any)
		counts->since_ns = process->inside->now_ns;
	counts->any = true;
}

/* ---- what was counted ------------------------------------------------------------------------ */

static struct inside_total *total_of(struct inside *inside, const struct hook *hook,
                                     const struct module *module)
{
	uint16_t id = hook->id;
	struct inside_total *total = MAP_FIND(inside->totals, &id);

	if (total)
		return total;
	total = MAP_ADD(inside->totals, hook, &id);
	total->name = hook->name;
	total->lib = module->name;
	return total;
}

static void tell_total(struct inside *inside, struct inside_total *total)
{
	modules_counted(inside->options.modules, &total->miss, total->name, total->lib,
	                &total->counted);
}

static void add_to_total(struct inside *inside, struct counted *at, uint64_t more)
{
	if (!at->total) {
		at->total = total_of(inside, at->hook, at->module);
		at->total->counted.processes++;
	}
	at->total->counted.calls += more;
	inside->counted += more;
	modules_lock(inside->options.modules);
	tell_total(inside, at->total);
	modules_unlock(inside->options.modules);
}

void inside_total_add_children(struct inside *inside, struct inside_total **total,
                               const struct hook *hook, const struct module *module, uint64_t more)
{
	if (!*total) {
		*total = total_of(inside, hook, module);
		(*total)->counted.parents++;
	}
	(*total)->in_children += more;
	inside->news_of_children = true;
}

void inside_total_told_child(struct inside *inside, const struct hook *hook,
                             const struct module *module)
{
	total_of(inside, hook, module)->told_of_children++;
	inside->news_of_children = true;
}

/* What a probe tells of now may be counted a little later. */
void inside_totals_tell(struct inside *inside)
{
	struct inside_total *total, *next;

	if (!inside->news_of_children)
		return;
	inside->news_of_children = false;
	inside->in_children = 0;
	HASH_ITER (hh, inside->totals, total, next) {
		uint64_t was = total->counted.in_children;

		total->counted.in_children = total->in_children > total->told_of_children
		                                     ? total->in_children - total->told_of_children
		                                     : 0;
		inside->in_children += total->counted.in_children;
		if (total->counted.in_children != was)
			tell_total(inside, total);
	}
}

uint64_t inside_calls_most(uint64_t since_ns, uint64_t now_ns)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	return (now_ns - since_ns) / CALL_NS * (uint64_t)(cpus > 1 ? cpus : 1) + SLACK_CALLS;
}

static void set(struct inside_process *process, struct counted *at, bool on)
{
	int rc = agents_probes_turn(process->inside->agents, (pid_t)process->pid, at->slot, 1,
	                            on ? AGENT_SLOT_COUNT : AGENT_SLOT_CALL);

	if (rc < 0)
		return; /* the next interval */
	at->on = on;
	at->since_ns = process->inside->now_ns;
	at->little_ns = 0;
	at->times += on;
}

static void read_one(struct inside_process *process, struct counted *at, uint64_t most)
{
	struct inside *inside = process->inside;
	uint64_t calls;

	if (at->bad && at->on) /* it could not be told then, as it answered nothing */
		set(process, at, false);
	if (at->bad || !at->times ||
	    !agents_probes_counted(inside->agents, (pid_t)process->pid, at->slot, &calls))
		return;
	if (calls < at->calls || calls - at->calls > most) {
		at->bad = true;
		inside->bad_records++;
		if (at->on)
			set(process, at, false);
		return;
	}
	if (calls == at->calls)
		return;
	add_to_total(inside, at, calls - at->calls);
	at->more += calls - at->calls;
	at->calls = calls;
}

void inside_counts_read(struct inside_process *process)
{
	struct inside_counts *counts = process->counts;
	uint64_t now_ns = clock_now_ns();
	uint64_t most;

	if (!counts)
		return;
	most = inside_calls_most(counts->read_ns, now_ns);
	for (size_t i = 0; i < counts->n; i++)
		read_one(process, &counts->all[i], most);
	counts->read_ns = now_ns;
}

/* ---- which ones ------------------------------------------------------------------------------ */

static int more_recorded(const void *a, const void *b, void *data)
{
	const struct inside_counts *counts = data;
	uint32_t x = counts->recorded[counts->all[*(const uint32_t *)a].slot];
	uint32_t y = counts->recorded[counts->all[*(const uint32_t *)b].slot];

	return (x < y) - (x > y);
}

/* What recording calls costs, as a share of one thread's time: as if one made all of them. */
static double share_of(uint64_t calls, uint64_t interval_ns)
{
	return RECORD_NS * (double)calls / (double)interval_ns;
}

static void tell(struct inside_process *process, size_t n, const struct counted *most)
{
	struct inside *inside = process->inside;

	if (n && inside->n_counting++ < TOLD_MOST)
		inside_notice(inside,
		              "%zu getter%s that process %u calls all the time %s counted from "
		              "%.0f ms on, and not recorded one by one (%s of %s most); "
		              "--all-calls=each records each",
		              n, n == 1 ? "" : "s", process->pid, n == 1 ? "is" : "are",
		              (inside->now_ns - inside->begin_ns) / 1e6, most->hook->name,
		              most->module->name);
}

/* The most frequent first, until what is left is little. */
static void begin_counting(struct inside_process *process, double share, uint64_t interval_ns)
{
	struct inside_counts *counts = process->counts;
	AT_END(at_end_free) uint32_t *order = xcalloc(counts->n, sizeof(*order));
	size_t n = 0;

	for (size_t i = 0; i < counts->n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, counts->n, sizeof(*order), more_recorded, counts);
	for (size_t i = 0; i < counts->n && share > LEFT_SHARE; i++) {
		struct counted *at = &counts->all[order[i]];

		/* what is on is recorded where it cannot be counted, or fails */
		if (at->on || at->bad || !counts->recorded[at->slot])
			continue;
		set(process, at, true);
		if (!at->on)
			break;
		share -= share_of(counts->recorded[at->slot], interval_ns);
		order[n++] = order[i];
	}
	tell(process, n, &counts->all[order[0]]);
}

/* One that was called little for a while is recorded again. */
static bool end_counting(struct inside_process *process, struct counted *at, double share,
                         uint64_t interval_ns)
{
	uint64_t now_ns = process->inside->now_ns;
	unsigned times = at->times < BACK_TIMES ? at->times : BACK_TIMES;

	if (!at->on)
		return false;
	if (share_of(at->more, interval_ns) > BACK_SHARE || share > LEFT_SHARE) {
		at->little_ns = 0;
		return false;
	}
	if (!at->little_ns)
		at->little_ns = now_ns;
	if (now_ns - at->little_ns < BACK_NS << (times - 1))
		return false;
	set(process, at, false);
	return true;
}

static void decide(struct inside_process *process, uint64_t interval_ns)
{
	struct inside_counts *counts = process->counts;
	double share = 0;

	for (size_t i = 0; i < counts->n; i++)
		share += share_of(counts->recorded[counts->all[i].slot], interval_ns);
	if (share > MOST_SHARE)
		begin_counting(process, share, interval_ns);
	for (size_t i = 0; i < counts->n; i++) {
		struct counted *at = &counts->all[i];

		if (end_counting(process, at, share, interval_ns))
			share += share_of(at->more, interval_ns);
		at->more = 0;
	}
}

void inside_counts_turn(struct inside_process *process)
{
	struct inside_counts *counts = process->counts;
	uint64_t now_ns = process->inside->now_ns;
	bool first = true;

	if (!counts || !counts->any)
		return;
	for (size_t i = 0; i < counts->n && first; i++)
		first = !counts->all[i].times;
	if (now_ns - counts->since_ns < (first ? FIRST_NS : INTERVAL_NS))
		return;
	inside_counts_read(process);
	decide(process, now_ns - counts->since_ns);
	counts->since_ns = now_ns;
	for (size_t i = 0; i < counts->n; i++)
		counts->recorded[counts->all[i].slot] = 0;
}

void inside_counted(struct inside *inside,
                    void (*each)(void *data, const struct inside_counted *counted), void *data)
{
	for (size_t i = 0; i < inside->n_counted_left; i++)
		each(data, &inside->counted_left[i]);
	inside->n_counted_left = 0;
	inside->counted_lost += inside->counted_dropped;
	inside->counted_dropped = 0;
	for (struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		struct inside_counts *counts = process->counts;

		for (size_t i = 0; counts && i < counts->n; i++) {
			struct counted *at = &counts->all[i];
			const struct inside_counted counted = { .pid = process->pid,
				                                .hook = at->hook->id,
				                                .calls = at->calls - at->shown };

			if (counted.calls)
				each(data, &counted);
			at->shown = at->calls;
		}
	}
}
