// SPDX-License-Identifier: MIT
/* Of a session: what it tells of the run, while it goes on and at its end. */
#include "capture/session.h"

#include <errno.h>
#include <string.h>

#include "probe/frozen.h"

/* ---- session stacks ------------------------------------------------------------------------ */

/* Of session.h: what a run tells of its stacks. */

bool capture_stack_figures(const struct capture *c, struct sampler_figures *figures)
{
	if (c->sampler)
		sampler_figures(c->sampler, figures);
	return c->sampler != NULL;
}

void capture_fill_stacks(const struct capture *c, struct run_stacks *stacks)
{
	const struct capture_stacks *asked = c->options.stacks;
	struct sampler_figures f;

	if (!capture_stack_figures(c, &f))
		return;
	*stacks = (struct run_stacks){
		.sample_ns = c->no_samples ? 0 : asked->sample_ns,
		.calls = asked->calls,
		.one_in = asked->one_in,
		.call_ns = asked->call_ns,
		.blocked = asked->blocked,
		.blocked_ns = asked->blocked_ns,
		.host_waits = asked->host_waits,
		.missed = { [STACKS_NO_WALK] =
		                    f.without_slot + programs_state(c->programs)->lost_stacks,
		            [STACKS_LOST] = f.without_stack,
		            [STACKS_PROCESSES] = f.unwinder.without_room,
		            [STACKS_FILES] = f.unwinder.code.without_room,
		            [STACKS_PYTHON] = f.unwinder.unknown_python,
		            [STACKS_PYTHON_LOST] = f.names.python_lost,
		            [STACKS_NO_ROOM] = f.names.refused + f.names.lines.refused,
		            [STACKS_TOO_FAST] = programs_state(c->programs)->stacks_left_out +
		                                (c->inside ? inside_stacks_too_fast(c->inside) : 0),
		            [STACKS_LINES_LATE] = f.names.lines.late,
		            [STACKS_LINES_LOST] = f.names.lines.unanswered,
		            [STACKS_MAPPINGS] = f.unwinder.cut,
		            [STACKS_WAKERS] = c->wakers ? wakers_without_room(c->wakers) : 0,
		            [STACKS_NAMES_LATE] = f.names.late },
	};
}

void capture_take_lines(struct capture *c)
{
	struct sampler_figures figures;
	char text[512];

	if (c->sampler)
		sampler_take_lines(c->sampler);
	while (c->sampler && sampler_news(c->sampler, text, sizeof(text)))
		capture_notice(c, "%s", text);
	if (capture_stack_figures(c, &figures) && figures.unwinder.code.without_probe)
		capture_notice(
			c, "there are too many processes for a probe in each: in some, what "
			   "CUDA graphs run, or backward passes, is not under who asked for it");
}

/* Of those of a cgroup nobody keeps a list: what is known of one came from it. */
static bool is_target(void *data, pid_t pid)
{
	const struct capture *c = data;

	return programs_target_has(c->programs, pid) ||
	       (c->options.target.kind == TARGET_CGROUP &&
	        pipeline_process_known(c->pipeline, (uint32_t)pid) &&
	        !programs_waker_has(c->programs, pid));
}

void session_open_wakers(struct capture *c)
{
	const struct wakers_options options = { c->programs, is_target, session_notice, c };

	if (c->options.stacks && c->options.stacks->wakers && c->options.target.kind != TARGET_ALL)
		c->wakers = wakers_new(&options);
}

static void say_of_older_threads(struct capture *c)
{
	struct sampler_figures figures;

	if (!capture_stack_figures(c, &figures))
		return;
	if (figures.older && c->options.target.kind == TARGET_CGROUP)
		capture_notice(c,
		               "--cgroup: of a thread that was blocked already at the begin and is "
		               "woken later, the time until then is not told");
	if (figures.older_without_room)
		capture_notice(c,
		               "%zu threads run already for which there is no room: those that "
		               "stay blocked from the begin to the end are not told of",
		               figures.older_without_room);
}

int capture_begin_stacks(struct capture *c, struct err *err)
{
	int r = sampler_begin(c->sampler, c->options.stacks->sample_ns, !c->options.stacks->if_any,
	                      err);

	if (r && c->options.stacks->if_any) {
		capture_notice(c, "no samples of stacks, without which all else is recorded: %s",
		               err->text);
		*err = (struct err){ 0 };
		c->no_samples = true;
		return 0;
	}
	if (!r)
		say_of_older_threads(c);
	return r;
}

void capture_say_why_no_samples(struct capture *c)
{
	const struct target *target = &c->options.target;
	struct sampler_figures figures;

	if (!capture_stack_figures(c, &figures) || !c->options.stacks->sample_ns ||
	    c->options.stacks->if_any || figures.samples || target->kind != TARGET_PIDS ||
	    c->n_target_pids)
		return;
	if (target->n_pids == 1)
		capture_notice(c, "process %d has ended: no sample of it was taken",
		               target->pids[0]);
	else
		capture_notice(c, "the processes have ended: no sample of them was taken");
}

/* ---- session limits ------------------------------------------------------------------------ */

/* Of a session: when it is over, and from when on the time counts that it is to last. */

#define BEHIND_NS 2000000000ull  /* calls are at most, where they are waited for */
#define AWAIT_NS  30000000000ull /* for agents: longer than these try by themselves (agent.c) */

/* Calls show in which processes CUDA works, and are behind on a busy machine: those of the time
 * that was asked for are still to be read. */
static bool may_await(const struct capture *c, uint64_t now)
{
	uint64_t until_ns = c->ready_ns + c->options.duration_ns;

	return order_passed_ns(c->order) < until_ns && now < until_ns + BEHIND_NS;
}

static bool metrics_asked(const struct capture *c)
{
	return c->metrics && (c->options.metrics_asked || c->options.stretches_ns);
}

/* Whether the time waits for what is to be taken all that time, and is on its way. */
static bool limits_awaits(const struct capture *c, uint64_t now)
{
	if (now - c->ready_ns >= AWAIT_NS)
		return false;
	if (c->gpu && (gpu_is_awaited(c->gpu) || (!gpu_measured(c->gpu) && may_await(c, now))))
		return true;
	return metrics_asked(c) && metrics_feed_is_awaited(c->metrics);
}

static bool has_come(const struct capture *c)
{
	return (c->gpu && gpu_measured(c->gpu)) ||
	       (metrics_asked(c) && metrics_feed_has_any(c->metrics));
}

/* Whether there is what the time is to be of; said where that takes long. */
static bool has_begun(struct capture *c, uint64_t now)
{
	const struct capture_options *o = &c->options;

	if (c->begun_ns)
		return true;
	if (now < o->from_ns)
		return false;
	if (!o->begun || o->begun(o->data)) {
		c->begun_ns = o->begun ? now : o->from_ns > c->ready_ns ? o->from_ns : c->ready_ns;
		return true;
	}
	if (!c->told_not_begun && now - c->ready_ns >= o->duration_ns)
		capture_notice(c,
		               "no work for a GPU yet: the %g s begin with the first (Ctrl-C to "
		               "stop%s)",
		               (double)o->duration_ns / 1e9,
		               o->timeout_ns ? "" : ", --timeout to give up without CUDA");
	c->told_not_begun |= now - c->ready_ns >= o->duration_ns;
	return false;
}

struct on_its_way {
	const struct gpu_times *gpu;
	bool any;
};

static void look_whether_on_its_way(void *data, const struct wire_head *record, size_t bytes)
{
	struct on_its_way *way = data;

	way->any |= gpu_is_on_its_way(way->gpu, (const struct wire_call *)record);
}

/* Whether an agent is being loaded, which is seen in no call that has returned. */
static bool is_loading(const struct capture *c, uint64_t now)
{
	struct on_its_way way = { .gpu = c->gpu };

	if (!c->gpu || gpu_measured(c->gpu) || now - c->ready_ns >= AWAIT_NS)
		return false;
	programs_open_calls(c->programs, look_whether_on_its_way, &way);
	return way.any;
}

/* Where nothing comes, the time counts from when all was hooked. */
static bool is_time_over(struct capture *c, uint64_t now)
{
	if (!has_begun(c, now))
		return false;
	if (!c->timed_ns && limits_awaits(c, now))
		return false;
	if (!c->timed_ns && has_come(c))
		c->timed_ns = now;
	if (now - (c->timed_ns ? c->timed_ns : c->begun_ns) < c->options.duration_ns)
		return false;
	return c->timed_ns || !is_loading(c, now);
}

bool session_is_over(struct capture *c, uint64_t now, struct err *err)
{
	const struct capture_options *o = &c->options;
	bool by_pid = o->target.kind == TARGET_PIDS;

	if (c->command_ended || (c->stopping && now >= c->stop_at_ns))
		return true;
	if (o->duration_ns && is_time_over(c, now))
		return true;
	if (o->enough && o->enough(o->data))
		return true;
	if (by_pid && !c->n_target_pids)
		return true;
	if (o->timeout_ns && !o->selection.none && !atomic_load(&c->cuda_seen) &&
	    now - c->begin_ns >= o->timeout_ns) {
		err_set(err, ETIMEDOUT,
		        "no CUDA library was loaded within %g s (libcuda.so.1, libcudart or a "
		        "program "
		        "with cudart linked in); --timeout sets how long to wait",
		        o->timeout_ns / 1e9);
		return true;
	}
	return false;
}

/* ---- session run --------------------------------------------------------------------------- */

#define GPUS_TURN_NS     1000000000ull
#define GPUS_AGAIN_NS    3000000000ull /* between samples: who uses which GPU */
#define GPUS_PATIENCE_NS 300000000     /* for what a short program's end came before */

/* Targets that hang are no longer read: see probe/helper.h. */
void session_tell_given_up(struct capture *c)
{
	char text[512];
	pid_t pid;

	while (helper_news(&pid, text, sizeof(text))) {
		capture_notice(c, "%s", text);
		modules_lock(c->modules);
		modules_miss(c->modules, MISS_NO_ANSWER, NULL, NULL, (uint32_t)pid, "%s",
		             strchr(text, ':') + 2);
		modules_unlock(c->modules);
	}
	while (frozen_news(text, sizeof(text)))
		capture_notice(c, "%s", text);
}

void session_tell_over_budget(struct capture *c)
{
	static const char *const whose[] = {
		[BUDGET_LIMIT_OWN] = "one target (8 MiB)",
		[BUDGET_LIMIT_PERSON] = "targets of one user (15 MiB)",
		[BUDGET_LIMIT_ALL] = "all targets (24 MiB)",
	};
	enum budget_limit limit;
	uint32_t pid;

	while (budget_news(c->budget, &pid, &limit)) {
		modules_lock(c->modules);
		modules_miss(c->modules, MISS_OVER_BUDGET, NULL, NULL, pid,
		             "the memory for %s is used up: further kernels, handles and stacks "
		             "of this process are left out",
		             whose[limit]);
		modules_unlock(c->modules);
	}
	modules_lock(c->modules);
	modules_more(c->modules, MISS_OVER_BUDGET, budget_unnamed(c->budget));
	modules_unlock(c->modules);
}

void session_tell_end(struct capture *c, const struct err *failure)
{
	AT_END(buf_free) struct buf left = { 0 };

	if (c->ranks)
		ranks_feed_left(c->ranks, &left);
	modules_lock(c->modules);
	if (left.len)
		modules_miss(c->modules, MISS_OVER_BUDGET, NULL, NULL, 0,
		             "what NCCL's RAS could tell of ranks found no room, or was beyond a "
		             "user's share: %s",
		             left.data);
	modules_tell_unseen_hooks(c->modules);
	if (failure)
		modules_miss(c->modules, MISS_FAILED, NULL, NULL, 0, "%s", failure->text);
	modules_unlock(c->modules);
}

static void read_lost(const struct capture *c, uint64_t lost[LOST_COUNT])
{
	memset(lost, 0, LOST_COUNT * sizeof(*lost));
	programs_lost(c->programs, lost);
	lost[LOST_LATE] += order_late(c->order);
	lost[LOST_TEXTS] += pipeline_lost_texts(c->pipeline);
	lost[LOST_OVER_BUDGET] += budget_refused(c->budget) + pipeline_other_processes(c->pipeline);
	lost[LOST_NO_ANSWER] = helper_unanswered() - c->unanswered_before;
	if (c->gpu)
		gpu_fill_lost(c->gpu, lost);
	if (c->inside)
		inside_fill_lost(c->inside, lost);
	if (c->driver_events)
		driver_events_fill_lost(c->driver_events, lost);
}

void capture_state(const struct capture *c, struct capture_state *state)
{
	read_lost(c, state->lost);
	state->overhead_percent = governor_percent(c->governor);
	state->estimate_scale = governor_scale(c->governor, capture_now_ns());
}

struct open_calls {
	const struct capture *capture;
	void (*each)(void *data, const struct capture_open_call *call);
	void *data;
};

static void tell_open_call(void *data, const struct wire_head *record, size_t bytes)
{
	const struct open_calls *open = data;
	const struct wire_call *call = (const struct wire_call *)record;
	struct capture_open_call told = { .pid = record->tgid,
		                          .tid = record->tid,
		                          .begin_ns = call->begin_ns };

	if (record->flags & WIRE_NESTED)
		return;
	told.function = pipeline_function(open->capture->pipeline, record->hook);
	if (told.function)
		open->each(open->data, &told);
}

void capture_open_calls(const struct capture *c,
                        void (*each)(void *data, const struct capture_open_call *call), void *data)
{
	struct open_calls open = { c, each, data };

	programs_open_calls(c->programs, tell_open_call, &open);
}

struct counted_calls {
	const struct capture *capture;
	void (*each)(void *data, uint32_t pid, const struct function *function, uint64_t calls);
	void *data;
};

static void tell_counted(void *data, const struct inside_counted *calls)
{
	const struct counted_calls *counted = data;
	const struct function *function =
		pipeline_function(counted->capture->pipeline, calls->hook);

	if (function)
		counted->each(counted->data, calls->pid, function, calls->calls);
}

void capture_counted_calls(const struct capture *c,
                           void (*each)(void *data, uint32_t pid, const struct function *function,
                                        uint64_t calls),
                           void *data)
{
	struct counted_calls counted = { c, each, data };

	if (c->inside)
		inside_counted(c->inside, tell_counted, &counted);
}

/* A driver may take a second for it, so it is asked while the program runs, on a thread. */
void session_ask_for_gpus(struct capture *c)
{
	if (!atomic_load(&c->cuda_seen))
		return;
	if ((c->gpu || c->metrics) && !c->gpus)
		c->gpus = gpus_new(GPUS_AGAIN_NS);
	if (c->metrics)
		metrics_feed_start(c->metrics);
}

/* A process has numbers of its own for GPUs (CUDA_VISIBLE_DEVICES); who asks the driver needs none
 * of them, nor believes the process. */
static void tell_users_of_gpus(struct capture *c, const struct gpus_sample *sample)
{
	if (c->who)
		who_feed_gpus(c->who, sample);
}

static void turn_gpus(struct capture *c)
{
	uint64_t now_ns = capture_now_ns();
	struct gpus_sample sample;

	if (!c->gpus || now_ns < c->gpus_turn_ns)
		return;
	c->gpus_turn_ns = now_ns + GPUS_TURN_NS;
	if (gpus_read(c->gpus, 0, &sample))
		tell_users_of_gpus(c, &sample);
}

int session_turn_metrics(struct capture *c, struct err *err)
{
	const char *why;
	int r;

	if (c->who)
		who_feed_turn(c->who, capture_now_ns());
	turn_gpus(c);
	if (c->ranks && c->options.ras_again && c->options.ras_again(c->options.data))
		ranks_feed_again(c->ranks);
	if (c->ranks && (r = ranks_feed_turn(c->ranks, c->pipeline, err)))
		return r;
	if (!c->metrics)
		return 0;
	r = metrics_feed_turn(c->metrics, c->pipeline, err);
	why = c->options.metrics_asked ? metrics_feed_why_none(c->metrics) : NULL;
	if (why)
		capture_notice(c, "no GPU metrics: %s", why);
	why = metrics_feed_why_no_stretches(c->metrics);
	if (why)
		capture_notice(c, "not known when GPUs were busy: %s", why);
	return r;
}

static void describe_gpus(struct capture *c)
{
	struct gpus_sample sample;

	if (gpus_read(c->gpus, GPUS_PATIENCE_NS, &sample)) {
		host_take_gpus(c->host, &sample);
		tell_users_of_gpus(c, &sample);
	}
	host_describe(c->host, &c->run);
}

void session_fill_run(struct capture *c)
{
	struct run_info *run = &c->run;

	describe_gpus(c);
	if (c->metrics)
		metrics_feed_fill_run(c->metrics, run);
	if (c->who)
		who_feed_fill(c->who, run);

	run->end_ns = capture_now_ns();
	session_tell_given_up(c);
	session_tell_over_budget(c);
	read_lost(c, run->lost);
	if (c->hold)
		hold_times(c->hold, &run->holds, &run->longest_hold_ns);
	run->estimate_scale = governor_scale(c->governor, run->end_ns);
	governor_cost(c->governor, &run->overhead_percent, &run->overhead_most_percent);
	capture_fill_stacks(c, &run->stacks);
	if (c->gpu)
		gpu_fill_run(c->gpu, run);
	modules_lock(c->modules);
	if (c->gpu)
		modules_more(c->modules, MISS_GPU_TIMES, gpu_turned_away(c->gpu));
	runtime_launches_tell(c->runtime_launches);
	run->n_misses = modules_misses(c->modules, &run->misses);
	modules_unlock(c->modules);
}
