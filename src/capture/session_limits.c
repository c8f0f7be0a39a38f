// SPDX-License-Identifier: MIT
/* Of a session: when it is over, and from when on the time counts that it is to last. */
#include "capture/session.h"

#include <errno.h>

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
static bool awaits(const struct capture *c, uint64_t now)
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
	if (!o->begun || o->begun(o->data)) {
		c->begun_ns = o->begun ? now : c->ready_ns;
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

/* Where nothing comes, the time counts from when all was hooked. */
static bool is_time_over(struct capture *c, uint64_t now)
{
	if (!has_begun(c, now))
		return false;
	if (!c->timed_ns && awaits(c, now))
		return false;
	if (!c->timed_ns && has_come(c))
		c->timed_ns = now;
	return now - (c->timed_ns ? c->timed_ns : c->begun_ns) >= c->options.duration_ns;
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
