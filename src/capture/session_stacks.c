// SPDX-License-Identifier: MIT
/* Of session.h: what a run tells of its stacks. */
#include "capture/session.h"

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
		            [STACKS_TOO_FAST] = programs_state(c->programs)->stacks_left_out,
		            [STACKS_LINES_LATE] = f.names.lines.late,
		            [STACKS_LINES_LOST] = f.names.lines.unanswered,
		            [STACKS_MAPPINGS] = f.unwinder.cut,
		            [STACKS_WAKERS] = c->wakers ? wakers_without_room(c->wakers) : 0,
		            [STACKS_NAMES_LATE] = f.names.late },
	};
}

void capture_take_lines(struct capture *c)
{
	char text[512];

	if (c->sampler)
		sampler_take_lines(c->sampler);
	while (c->sampler && sampler_news(c->sampler, text, sizeof(text)))
		capture_notice(c, "%s", text);
}

static void waker_notice(void *data, const char *text)
{
	capture_notice(data, "%s", text);
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
	const struct wakers_options options = { c->programs, is_target, waker_notice, c };

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
