// SPDX-License-Identifier: MIT
/* Of a session: the agents in its targets, for GPU times and for calls recorded there. */
#include "capture/session.h"

#include "agent/wire.h"

/*
 * Whether agents may tell of launches instead of probes. They may not if processes can begin
 * unseen, if agents pause, or if more is wanted of a launch than its begin, end and arguments. Only
 * sessions can do without the return of a launch whose entry they left alone.
 */
bool session_agents_may_tell(const struct capture *c)
{
	const struct capture_options *o = &c->options;

	return o->gpu && o->gpu->kinds & AGENT_WANT_KERNELS && !o->gpu->window_ns && o->returns &&
	       !o->begin_records && !o->max_overhead && !o->watch && !o->selection.failed &&
	       !(o->stacks && o->stacks->calls & STACK_CALLS_LAUNCHES) &&
	       (o->target.kind == TARGET_COMMAND || o->target.kind == TARGET_PIDS ||
	        o->target.kind == TARGET_NAME) &&
	       programs_mechanism(c->programs) == MECHANISM_SESSION;
}

/* Else it is not known which were recorded into graphs, or launches are not seen at all. */
static bool sees_all_launches(const struct capture *c)
{
	const struct selection *selection = &c->options.selection;

	return !selection->classes && !selection->n_only && !selection->n_skip;
}

static void gpu_notice(void *data, const char *text)
{
	capture_notice(data, "%s", text);
}

/* Its failures are not the capture's, but for an option that cannot be followed. */
int session_open_agents(struct capture *c, struct err *err)
{
	const struct gpu_options options = { .settings = c->options.gpu,
		                             .target = c->options.target.kind,
		                             .follow = c->options.target.follow,
		                             .pipeline = c->pipeline,
		                             .modules = c->modules,
		                             .programs = c->programs,
		                             .correlate = c->correlate,
		                             .all_launches = sees_all_launches(c),
		                             .budget = c->budget,
		                             .launches = c->options.selection.agents,
		                             .ring_bytes = c->options.ring_bytes,
		                             .notice = gpu_notice,
		                             .data = c };
	struct order_source source;
	int r;

	if (!c->options.gpu)
		return 0;
	r = gpu_open(&options, &c->gpu, err);
	if (r)
		return r;
	source = gpu_source(c->gpu);
	order_add_source(c->order, &source);
	gpu_begin(c->gpu, c->begin_ns, 0, false);
	return 0;
}

/* The agent of a command comes with its environment. */
void session_environment(struct capture *c, struct command *command)
{
	struct err err = { 0 };

	if (!c->gpu || !gpu_environment(c->gpu, &command->environment.set, &err))
		return;
	command->environment.set = NULL;
	capture_notice(c, "no GPU times: %s", err.text);
	modules_miss(c->modules, MISS_GPU_TIMES, NULL, NULL, 0, "%s", err.text);
}
