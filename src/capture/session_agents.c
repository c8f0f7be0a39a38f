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
	       !(o->stacks && o->stacks->calls & STACK_CALLS_LAUNCHES) && !c->inside &&
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

/* The governor leaves some out, and so does who asks for those that failed. */
static bool records_each_launch(const struct capture *c)
{
	const struct selection *selection = &c->options.selection;

	return sees_all_launches(c) && selection->layers != LAYERS_RUNTIME && !selection->none &&
	       !selection->fold && !selection->failed && !c->options.max_overhead;
}

static bool probed(void *data, uint32_t pid, const struct agent_head *record,
                   struct correlate_span *call)
{
	return inside_record(data, pid, record, call);
}

/* Its failures are not the capture's, but for an option that cannot be followed. */
static int open_gpu(struct capture *c, struct err *err)
{
	struct gpu_options options = { .settings = c->options.gpu,
		                       .target = c->options.target.kind,
		                       .follow = c->options.target.follow,
		                       .pipeline = c->pipeline,
		                       .modules = c->modules,
		                       .programs = c->programs,
		                       .correlate = c->correlate,
		                       .all_launches = sees_all_launches(c),
		                       .each_launch = records_each_launch(c),
		                       .budget = c->budget,
		                       .launches = c->options.selection.agents,
		                       .nodes = capture_walks(c->options.stacks),
		                       .ring_bytes = c->options.ring_bytes,
		                       .notice = session_notice,
		                       .data = c };
	struct order_source source;
	int r;

	if (c->inside) {
		options.probes = inside_probes(c->inside);
		options.probed = probed;
		options.probes_data = c->inside;
	}
	r = gpu_open(&options, &c->gpu, err);
	if (r)
		return r;
	source = gpu_source(c->gpu);
	order_add_source(c->order, &source);
	gpu_begin(c->gpu, c->begin_ns, 0, false);
	return 0;
}

/*
 * Whether probes may go while all who need them are recorded inside. All targets have to be known,
 * and what they map told of. A link for each probe takes too long to be made and closed.
 */
static bool may_take_away(const struct capture *c)
{
	enum mechanism mechanism = programs_mechanism(c->programs);
	enum target_kind kind = c->options.target.kind;

	return c->mmap_seen && !c->options.watch &&
	       (mechanism == MECHANISM_SESSION || mechanism == MECHANISM_MULTI) &&
	       (kind == TARGET_COMMAND || kind == TARGET_PIDS || kind == TARGET_NAME);
}

static void marked(void *data, pid_t pid)
{
	struct capture *c = data;

	watcher_marked(c->watcher, pid, capture_now_ns());
}

static bool walks(void *data, pid_t pid, bool came)
{
	struct capture *c = data;

	return c->sampler && sampler_walks_calls(c->sampler, pid, came);
}

/* First: what it wants of agents is told when they are opened. */
static int open_inside(struct capture *c, struct err *err)
{
	const struct capture_stacks *stacks = c->options.stacks;
	const struct inside_options options = {
		.target = c->options.target.kind,
		.follow = c->options.target.follow,
		.takes_away = may_take_away(c),
		.begins = c->options.begin_records,
		.stack_kinds = stacks ? capture_stack_kinds(stacks->calls) : 0,
		.due = stacks ? (struct wire_due){ stacks->call_ns, stacks->one_in }
		              : (struct wire_due){ 0 },
		.walks = walks,
		.fold = c->options.selection.fold,
		.counts = !c->options.selection.fold && !c->options.selection.each_call,
		.marked = c->watcher ? marked : NULL,
		.ring_bytes = c->options.ring_bytes,
		.quiet = c->inside_by_itself,
		.pipeline = c->pipeline,
		.modules = c->modules,
		.programs = c->programs,
		.notice = session_notice,
		.data = c
	};
	int r = inside_open(c->inside, &options, !c->options.gpu, err);

	inside_begin(c->inside, c->begin_ns, 0, NULL);
	return r;
}

int session_open_agents(struct capture *c, struct err *err)
{
	struct order_source source;
	int r = c->inside ? open_inside(c, err) : 0;

	if (!r && c->options.gpu)
		r = open_gpu(c, err);
	if (r || !c->inside)
		return r;
	if (c->gpu)
		inside_use_agents(c->inside, gpu_agents(c->gpu));
	source = inside_source(c->inside); /* rather than launches that CUPTI tells of */
	order_add_source(c->order, &source);
	return 0;
}

static int environment(struct capture *c, struct command *command, struct err *err)
{
	if (c->gpu)
		return gpu_environment(c->gpu, &command->environment.set, err);
	if (c->inside)
		return inside_environment(c->inside, &command->environment.set, err);
	return 0;
}

void session_environment(struct capture *c, struct command *command)
{
	struct err err = { 0 };

	if (!environment(c, command, &err))
		return;
	command->environment.set = NULL;
	capture_notice(c, "no %s: %s", c->gpu ? "GPU times" : "calls are recorded in process",
	               err.text);
	if (c->gpu)
		modules_miss(c->modules, MISS_GPU_TIMES, NULL, NULL, 0, "%s", err.text);
}

void session_begin_agents(struct capture *c)
{
	if (c->gpu)
		gpu_begin(c->gpu, c->begin_ns, c->command_pid, c->held);
	if (c->inside)
		inside_begin(c->inside, c->begin_ns, c->command_pid, c->held ? c->hold : NULL);
}

void session_poll_agents(struct capture *c, void (*poll)(struct capture *c, int fd))
{
	if (c->gpu)
		poll(c, gpu_fd(c->gpu));
	if (!c->inside)
		return;
	if (!c->gpu)
		poll(c, inside_agents_fd(c->inside));
	poll(c, inside_divert_fd(c->inside));
}

bool session_is_of_agents(const struct capture *c, int fd)
{
	return (c->gpu && fd == gpu_fd(c->gpu)) ||
	       (c->inside &&
	        (fd == inside_agents_fd(c->inside) || fd == inside_divert_fd(c->inside)));
}

void session_runs(struct capture *c, pid_t pid)
{
	if (c->gpu)
		gpu_running(c->gpu, pid);
}

int session_turn_agents(struct capture *c, uint64_t now_ns, struct err *err)
{
	if (c->inside) /* first: it looks at the clocks */
		inside_turn(c->inside, now_ns);
	return c->gpu ? gpu_turn(c->gpu, now_ns, err) : 0;
}

/* ---- records ------------------------------------------------------------------------------- */

/* Records are copies, of order.c's. */
bool session_agents_told(struct capture *c, const struct wire_head *record)
{
	if (c->inside && record->type == WIRE_MAPPED)
		inside_mapped(c->inside, (pid_t)record->tgid, record->time_ns);
	if (c->inside && inside_leaves_out(c->inside, record)) {
		inside_nests_no_more(c->inside, (struct wire_head *)record);
		return true;
	}
	return (c->inside && inside_nests(c->inside, (struct wire_head *)record)) ||
	       (c->gpu && gpu_is_double(c->gpu, record));
}

static int before_gpu(struct capture *c, const struct wire_head *record)
{
	switch (record->type) {
	case WIRE_FORK:
		gpu_forked(c->gpu);
		return 0;
	case WIRE_EXIT:
		return gpu_exit(c->gpu, (pid_t)record->tgid, record->time_ns, &c->failure);
	case WIRE_EXEC:
		return gpu_exec(c->gpu, (pid_t)record->tgid, record->time_ns, &c->failure);
	}
	return 0;
}

static void before_inside(struct capture *c, const struct wire_head *record)
{
	pid_t pid = (pid_t)record->tgid;

	if (record->type == WIRE_FORK)
		inside_forked(c->inside, pid, (pid_t)((const struct wire_process *)record)->other,
		              record->time_ns);
	else if (record->type == WIRE_EXIT)
		inside_exit(c->inside, pid, record->time_ns);
	else if (record->type == WIRE_EXEC)
		inside_exec(c->inside, pid, record->time_ns);
}

int session_meet_thread(struct capture *c, const struct wire_head *record)
{
	struct wire_process thread;

	return inside_meets_thread(c->inside, record, &thread)
	               ? pipeline_record(c->pipeline, &thread.head, &c->failure)
	               : 0;
}

int session_agents_before(struct capture *c, const struct wire_head *record)
{
	int r = c->gpu ? before_gpu(c, record) : 0;

	if (!c->inside)
		return r;
	before_inside(c, record);
	return r ? r : session_meet_thread(c, record);
}

void session_agents_after(struct capture *c, const struct wire_head *record)
{
	if (c->gpu && record->type == WIRE_EXEC)
		gpu_execed(c->gpu, (pid_t)record->tgid);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* What was diverted is put back first: until then agents are needed. */
void session_stop_agents(struct capture *c)
{
	if (c->inside)
		inside_stop(c->inside);
}

bool session_agents_stopped(struct capture *c)
{
	if (c->inside && !inside_stopped(c->inside))
		return false;
	if (c->gpu && !c->agents_told)
		gpu_stop(c->gpu);
	c->agents_told = true;
	return !c->gpu || gpu_stopped(c->gpu);
}

/* Those that are still there go on writing: what is read of them later would be nobody's. */
int session_read_rest_of_agents(struct capture *c)
{
	uint64_t now_ns = capture_now_ns();

	if (c->gpu && !c->agents_told)
		gpu_stop(c->gpu);
	c->agents_told = true;
	if (c->inside)
		inside_read_rest(c->inside, now_ns);
	return c->gpu ? gpu_turn(c->gpu, now_ns, &c->failure) : 0;
}

int session_finish_agents(struct capture *c)
{
	if (c->inside)
		inside_finish(c->inside);
	return c->gpu ? gpu_finish(c->gpu, &c->failure) : 0;
}
