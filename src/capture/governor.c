// SPDX-License-Identifier: MIT
#include "capture/governor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define INTERVAL_NS     250000000ull
#define FIRST_NS        50000000ull /* a burst of getters is met soon */
#define WINDOW_CYCLE_NS 2000000000ull
#define WINDOW_LEAST_NS 50000000ull
#define RECENT          64  /* a power of two */
#define OWN_LEAST       0.1 /* of a thread's time: what a call costs is not known better */

struct thread_cost {
	uint32_t tid;
	double ns, told_ns; /* all; of calls that are recorded in their process */
	uint64_t hits;
	UT_hash_handle hh;
};

struct governor {
	struct governor_options options;
	double limit; /* percent */
	bool explicit_limit;
	uint64_t interval_begin_ns;
	bool first;
	struct thread_cost *threads;
	struct thread_cost *recent[RECENT]; /* by the low bits of their numbers */
	uint64_t hits[WIRE_HOOKS_MAX];
	double percent;
	uint32_t busiest;                 /* whose that is */
	bool inside;                      /* most of it is of calls recorded in their process */
	double told_percent;              /* the last that the user was told of */
	double sum_percent, most_percent; /* over whole intervals: weighted by time */
	uint64_t sum_ns;
	char text[256];

	bool windows; /* measuring in windows */
	bool window_open;
	uint64_t window_ns, switch_ns; /* length of a window; when the next change is due */
	uint64_t began_ns, windows_began_ns, open_ns, opened_ns;
	uint64_t last_open_ns;        /* of the last window that closed */
	double hits_seen, hits_meant; /* in windows; what they would be but for tracing */
};

struct governor *governor_new(const struct governor_options *options, uint64_t now_ns)
{
	struct governor *g = xcalloc(1, sizeof(*g));

	g->options = *options;
	g->explicit_limit = options->max_percent > 0;
	g->limit = g->explicit_limit ? options->max_percent : GOVERNOR_DEFAULT_PERCENT;
	g->interval_begin_ns = g->began_ns = now_ns;
	g->first = true;
	return g;
}

static void forget_threads(struct governor *g)
{
	memset(g->recent, 0, sizeof(g->recent));
	MAP_FREE(g->threads, free);
}

void governor_free(struct governor *g)
{
	if (!g)
		return;
	forget_threads(g);
	free(g);
}

static bool entry_only(const struct governor *g, uint16_t hook)
{
	return !g->options.returns ||
	       (programs_state(g->options.programs)->mode[hook] & HOOK_GIVEN_UP);
}

static struct thread_cost *thread_get(struct governor *g, const struct wire_call *call)
{
	uint32_t tid = call->head.tid;
	struct thread_cost **recent = &g->recent[tid % RECENT], *thread = *recent;

	if (thread && thread->tid == tid)
		return thread;
	thread = MAP_MAKE(g->threads, tid, &tid);
	return *recent = thread;
}

/* Functions are not counted: taking their probes away would save nothing. */
void governor_told(struct governor *g, const struct wire_call *call, bool met)
{
	struct thread_cost *thread = thread_get(g, call);
	double ns = g->options.cost.inside_ns + (met ? g->options.cost.entry_ns : 0);

	thread->hits++;
	thread->ns += ns;
	thread->told_ns += ns;
}

void governor_hit(struct governor *g, const struct wire_call *call)
{
	struct thread_cost *thread = thread_get(g, call);

	thread->hits++;
	thread->ns += call->head.flags & WIRE_NO_RETURN ? g->options.cost.entry_ns
	                                                : g->options.cost.call_ns;
	g->hits[call->head.hook]++;
}

/* ---- taking hooks away --------------------------------------------------------------------- */

struct victim {
	struct module *module;
	struct hook *hook;
	uint64_t hits;
};

ORDER_BY(more_hits, struct victim, DOWN(hits));

static bool is_of(const struct hook *hook, enum hook_group group)
{
	return hook->group == group || (group == HOOK_CORE && hook->group == HOOK_LAUNCH);
}

/* Hooked functions of one group that were hit in this interval, the most frequent first. */
static size_t find_victims(struct governor *g, enum hook_group group, struct victim **victims)
{
	size_t count = 0;

	*victims = NULL;
	for (size_t m = 0; m < modules_count(g->options.modules); m++) {
		struct module *module = modules_at(g->options.modules, m);

		for (size_t i = 0; i < module->n_hooks; i++) {
			struct hook *hook = &module->hooks[i];

			if (!is_of(hook, group) || !hook->hooked || hook->moved ||
			    !g->hits[hook->id])
				continue;
			*victims = vec_room(*victims, count, sizeof(**victims));
			(*victims)[count++] = (struct victim){ module, hook, g->hits[hook->id] };
		}
	}
	if (count)
		qsort(*victims, count, sizeof(**victims), more_hits);
	return count;
}

static uint64_t total_hits(const struct governor *g)
{
	uint64_t total = 0;

	for (size_t i = 0; i < WIRE_HOOKS_MAX; i++)
		total += g->hits[i];
	return total;
}

/* What one hit of this interval costs, in percent. */
static double percent_per_hit(const struct governor *g)
{
	uint64_t total = total_hits(g);

	return total ? g->percent / total : 0;
}

/* The others of the module are away meanwhile, and what they were called is not known. */
static void relink(struct governor *g, struct module *module)
{
	uint64_t begin_ns = clock_now_ns();

	if (module_relink_little(module))
		modules_miss(g->options.modules, MISS_UNHOOKED, NULL, module->name, 0,
		             "everything that tells little, for %.0f ms while some of it was "
		             "taken away",
		             (clock_now_ns() - begin_ns) / 1e6);
	modules_tell_unhooked(g->options.modules, module);
}

/* Unhooks getters until what is left would be within the limit. Returns how many. */
static size_t give_up_little(struct governor *g, double seconds)
{
	AT_END(at_end_free) struct victim *victims;
	size_t count = find_victims(g, HOOK_LITTLE, &victims), taken = 0;
	double each = percent_per_hit(g);

	for (; taken < count && g->percent > g->limit; taken++) {
		struct victim *victim = &victims[taken];
		uint16_t hook = victim->hook->id;

		modules_miss(g->options.modules, MISS_UNHOOKED, victim->hook->name,
		             victim->module->name, 0, "%.0f calls a second cost %.1f %%",
		             victim->hits / seconds, each * victim->hits);
		programs_state(g->options.programs)->mode[hook] |= HOOK_IGNORE;
		victim->hook->given_up = true;
		g->percent -= each * victim->hits;
		g->hits[hook] = 0;
	}
	for (size_t m = 0; taken && m < modules_count(g->options.modules); m++)
		relink(g, modules_at(g->options.modules, m));
	return taken;
}

/*
 * Takes the return of the first victim away or, where the returns of a module hang together, of all
 * in its module. Returns how many hits are cheaper by that.
 */
static uint64_t give_up_return(struct governor *g, const struct victim *victims, size_t count)
{
	bool session = programs_mechanism(g->options.programs) == MECHANISM_SESSION;
	struct module *module = victims[0].module;
	const char *name = session ? victims[0].hook->name : NULL;
	uint64_t hits = 0;

	for (size_t i = 0; i < (session ? 1 : count); i++) {
		if (victims[i].module == module && !entry_only(g, victims[i].hook->id))
			hits += victims[i].hits;
	}
	if (session)
		programs_state(g->options.programs)->mode[victims[0].hook->id] |= HOOK_ENTRY_ONLY;
	else
		module_drop_returns(module);
	modules_miss(g->options.modules, MISS_ENTRY_ONLY, name, module->name, 0,
	             "durations and results given up for --max-overhead %g%%", g->limit);
	return hits;
}

/* Takes the returns of frequent functions away: about half of their cost. */
static size_t give_up_returns(struct governor *g)
{
	AT_END(at_end_free) struct victim *victims;
	size_t count = find_victims(g, HOOK_CORE, &victims), taken = 0;
	double saved = 1 - g->options.cost.entry_ns / g->options.cost.call_ns;
	double each = percent_per_hit(g);

	for (size_t i = 0; i < count && g->percent > g->limit; i++) {
		if (entry_only(g, victims[i].hook->id))
			continue;
		g->percent -= saved * each * give_up_return(g, &victims[i], count - i);
		taken++;
	}
	return taken;
}

/* ---- measuring in windows ------------------------------------------------------------------ */

/*
 * What appears while a window is closed is hooked when the next one opens. A module whose probes do
 * not come back is told of once.
 */
static void hook_all(struct governor *g, bool hook)
{
	modules_pause(g->options.modules, !hook);
	for (size_t m = 0; m < modules_count(g->options.modules); m++) {
		struct module *module = modules_at(g->options.modules, m);
		struct err err = { 0 };

		if (!hook) {
			module_detach(module);
		} else if (module_attach(module, &err) && !module->told_unhooked) {
			module->told_unhooked = true;
			modules_miss(g->options.modules, MISS_NOT_HOOKED, NULL, module->name, 0,
			             "for a window of time: %s", err.text);
		}
		modules_tell_unhooked(g->options.modules, module);
	}
}

static void begin_windows(struct governor *g, uint64_t now_ns)
{
	double share = g->limit / g->percent;

	g->windows = true;
	g->window_open = true;
	g->window_ns = WINDOW_CYCLE_NS * share;
	if (g->window_ns < WINDOW_LEAST_NS)
		g->window_ns = WINDOW_LEAST_NS;
	g->windows_began_ns = g->opened_ns = now_ns;
	g->switch_ns = now_ns; /* close at once */
	modules_miss(g->options.modules, MISS_ESTIMATED, NULL, NULL, 0,
	             "measured in windows of %.0f ms every %.1f s for --max-overhead %g%%, since "
	             "the calls of thread %u cost it more",
	             g->window_ns / 1e6, WINDOW_CYCLE_NS / 1e9, g->limit, g->busiest);
}

/* The part of some time that a thread had for itself, while tracing took some of it. */
static double own_ns(const struct thread_cost *thread, double of_ns)
{
	double least = of_ns * OWN_LEAST;

	return of_ns - thread->ns > least ? of_ns - thread->ns : least;
}

/*
 * What was seen in the window before this one. A thread that tracing slowed down made fewer calls
 * in it than it makes in as much time between two.
 */
static void settle_window(struct governor *g)
{
	const struct thread_cost *thread, *next;

	if (g->last_open_ns >= WINDOW_LEAST_NS / 2) {
		HASH_ITER (hh, g->threads, thread, next) {
			g->hits_seen += thread->hits;
			g->hits_meant += thread->hits * (double)g->last_open_ns /
			                 own_ns(thread, g->last_open_ns);
		}
	}
	forget_threads(g);
	memset(g->hits, 0, sizeof(g->hits));
}

static void turn_window(struct governor *g, uint64_t now_ns)
{
	if (now_ns < g->switch_ns)
		return;
	if (g->window_open) {
		g->last_open_ns = now_ns - g->opened_ns;
		g->open_ns += g->last_open_ns;
		hook_all(g, false);
		g->switch_ns = now_ns + WINDOW_CYCLE_NS - g->window_ns;
	} else {
		settle_window(g);
		hook_all(g, true);
		g->opened_ns = now_ns;
		g->switch_ns = now_ns + g->window_ns;
	}
	g->window_open = !g->window_open;
}

double governor_scale(const struct governor *g, uint64_t now_ns)
{
	double before, open, closed, faster;

	if (!g->windows)
		return 1;
	before = g->windows_began_ns - g->began_ns;
	open = g->open_ns + (g->window_open ? now_ns - g->opened_ns : 0);
	closed = now_ns - g->began_ns - before - open;
	faster = g->hits_seen > 0 ? g->hits_meant / g->hits_seen : 1;
	return before + open > 0 ? (before + open + closed * faster) / (before + open) : 1;
}

/* ---- the tick ------------------------------------------------------------------------------ */

static double busiest_share(struct governor *g, double interval_ns)
{
	const struct thread_cost *thread, *next;
	double most = 0;

	HASH_ITER (hh, g->threads, thread, next) {
		/* what tracing added to the interval is not the target's own time */
		double share = 100 * thread->ns / own_ns(thread, interval_ns);

		if (share <= most)
			continue;
		most = share;
		g->busiest = thread->tid;
		g->inside = thread->told_ns > thread->ns / 2;
	}
	return most;
}

/* What saves probes would only bring them back where calls are recorded without. */
static const char *say_cost(struct governor *g)
{
	g->told_percent = g->percent;
	if (g->inside)
		snprintf(g->text, sizeof(g->text),
		         "tracing costs about %.0f %% of the busiest thread's time, with its calls "
		         "recorded inside of the process; --only and --skip choose functions",
		         g->percent);
	else
		snprintf(g->text, sizeof(g->text),
		         "tracing costs about %.0f %% of the busiest thread's time (%.2f us a "
		         "call); "
		         "--no-returns halves that, --max-overhead N%% limits it",
		         g->percent, g->options.cost.call_ns / 1e3);
	return g->text;
}

static const char *act(struct governor *g, uint64_t now_ns, double seconds)
{
	double before = g->percent;
	size_t little = now_ns >= g->options.getters_ns ? give_up_little(g, seconds) : 0;
	size_t returns = 0;

	if (g->explicit_limit && g->percent > g->limit && g->options.returns)
		returns = give_up_returns(g);
	if (g->explicit_limit && g->percent > g->limit && !returns)
		begin_windows(g, now_ns);
	if (little) {
		snprintf(g->text, sizeof(g->text),
		         "tracing cost %.0f %% of a thread's time: %zu function%s little %s "
		         "unhooked "
		         "(the summary names %s)",
		         before, little, little == 1 ? " that tells" : "s that tell",
		         little == 1 ? "was" : "were", little == 1 ? "it" : "them");
		return g->text;
	}
	if (g->percent > g->limit && !g->explicit_limit && g->percent >= 2 * g->told_percent &&
	    now_ns >= g->options.patient_ns)
		return say_cost(g);
	return NULL;
}

static void add_cost(struct governor *g, uint64_t interval_ns)
{
	g->sum_percent += g->percent * interval_ns;
	g->sum_ns += interval_ns;
	if (g->percent > g->most_percent)
		g->most_percent = g->percent;
}

void governor_cost(const struct governor *g, double *percent, double *most_percent)
{
	*percent = g->sum_ns ? g->sum_percent / g->sum_ns : 0;
	*most_percent = g->most_percent;
}

const char *governor_tick(struct governor *g, uint64_t now_ns)
{
	uint64_t interval = now_ns - g->interval_begin_ns;
	const char *say = NULL;

	if (g->windows) {
		modules_lock(g->options.modules);
		turn_window(g, now_ns);
		modules_unlock(g->options.modules);
		return NULL;
	}
	if (interval < (g->first ? FIRST_NS : INTERVAL_NS))
		return NULL;
	g->first = false;
	g->percent = busiest_share(g, interval);
	add_cost(g, interval);
	if (g->percent > g->limit) {
		modules_lock(g->options.modules);
		say = act(g, now_ns, interval / 1e9);
		modules_unlock(g->options.modules);
	}
	g->interval_begin_ns = now_ns;
	memset(g->hits, 0, sizeof(g->hits));
	forget_threads(g);
	return say;
}

double governor_percent(const struct governor *g)
{
	return g->percent;
}
