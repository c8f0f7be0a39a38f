// SPDX-License-Identifier: MIT
/* GPU times of a run: which agents are wanted, what they say, and when they leave. */
#include "capture/gpu/gpu_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "capture/proc.h"
#include "probe/helper.h"

#define CALLS_NS        50000000ull /* by then the call of an activity has come, nearly always */
#define NOTICES_MOST    8
#define TOLD_RING_BYTES (32u << 20) /* an agent that tells of launches writes six times as much */

/* ---- processes ----------------------------------------------------------------------------- */

static const struct kernel *kernel_named(void *data, const char *mangled)
{
	const struct gpu_times_process *process = data;

	return pipeline_kernel_named(process->gpu->options.pipeline, process->pid, mangled);
}

static struct gpu_records *new_records(struct gpu_times_process *process)
{
	const struct gpu_records_options options = { .kernel = kernel_named,
		                                     .data = process,
		                                     .budget = process->gpu->options.budget,
		                                     .owner = process->pid };

	return gpu_records_new(&options);
}

struct gpu_times_process *gpu_process_get(struct gpu_times *gpu, uint32_t pid)
{
	struct gpu_times_process *process = gpu->recent;

	if (process && process->pid == pid)
		return process;
	process = MAP_FIND(gpu->processes, &pid);
	if (!process) {
		process = MAP_ADD(gpu->processes, pid, &pid);
		process->gpu = gpu;
		process->agent = ++gpu->n_agents;
		process->person = helper_person_of((pid_t)pid);
		process->records = new_records(process);
	}
	return gpu->recent = process;
}

struct gpu_nodes *gpu_process_nodes(struct gpu_times_process *process)
{
	if (!process->nodes)
		process->nodes = gpu_nodes_new(process->gpu->options.budget, process->pid);
	return process->nodes;
}

static void process_drop(struct gpu_times *gpu, struct gpu_times_process *process)
{
	gpu->recent = NULL;
	HASH_DEL(gpu->processes, process);
	gpu->unrecorded += unrecorded_end(&process->unrecorded);
	gpu_records_free(process->records);
	gpu_nodes_free(process->nodes);
	free(process->hooks);
	free(process->told);
	free(process);
}

void gpu_records_renew(struct gpu_times *gpu, struct gpu_times_process *process)
{
	gpu_records_free(process->records);
	process->records = new_records(process);
	process->agent = ++gpu->n_agents;
	free(process->hooks);
	process->hooks = NULL;
	process->n_hooks = 0;
}

/* ---- opening and closing ------------------------------------------------------------------- */

/*
 * Whether a process that brings its agent along is a target. The name of the socket is no secret
 * (/proc/net/unix): a stranger's process that connects is to be turned away, not believed.
 */
static bool is_wanted(void *data, pid_t pid)
{
	const struct gpu_times *gpu = data;
	bool wanted = gpu->options.programs ? programs_target_has(gpu->options.programs, pid)
	                                    : gpu->options.follow || pid == gpu->command;

	if (wanted) /* it waits for an answer: later it may be gone, and nobody knows its name */
		pipeline_process(gpu->options.pipeline, (uint32_t)pid);
	return wanted;
}

static void tell_no_agent(struct gpu_times *gpu, pid_t pid)
{
	char text[256];

	snprintf(text, sizeof(text),
	         "no GPU times of process %d: it uses CUDA, but has no agent; was its environment "
	         "cleaned (env -i, sudo)? With --no-hold cuscope enters it",
	         pid);
	gpu_tell_trouble(gpu, gpu_process_get(gpu, (uint32_t)pid), text, true);
}

/* Whether CUDA works in a process, and its agent neither measured nor failed. */
static bool is_not_in(const struct gpu_times *gpu, pid_t pid)
{
	const struct gpu_times_process *process = MAP_FIND(gpu->processes, &pid);

	return gpu_targets_has(gpu->targets, pid) &&
	       (!process || (!process->measured && !process->told));
}

/* Of many processes that live short, a few are told of at once, and all of them at the end. */
static void tell_not_in(struct gpu_times *gpu, pid_t pid, const char *why)
{
	struct gpu_times_process *process = gpu_process_get(gpu, (uint32_t)pid);
	char text[256];

	snprintf(text, sizeof(text), "no GPU times of process %d: %s", pid, why);
	if (gpu->not_in++ < NOTICES_MOST)
		gpu_tell_trouble(gpu, process, text, true);
	else
		gpu_tell_missed(gpu, process, text);
}

static void enter(void *data, pid_t pid)
{
	struct gpu_times *gpu = data;

	if (gpu->held)
		tell_no_agent(gpu, pid);
	else
		agents_enter(gpu->agents, pid);
}

static void note_windows(struct gpu_times *gpu)
{
	const struct capture_gpu *settings = gpu->options.settings;

	if (!settings->window_ns || settings->window_percent > 0)
		return;
	modules_lock(gpu->options.modules);
	modules_miss(gpu->options.modules, MISS_GPU_WINDOWS, NULL, NULL, 0,
	             "GPU times of %g s in every %g s only (--gpu-window)",
	             settings->window_ns / 1e9, settings->period_ns / 1e9);
	modules_unlock(gpu->options.modules);
}

/* From then on it is not known of which launches records are to come. */
static void on_dear(void *data, uint32_t pid, double percent, uint64_t window_ns,
                    uint64_t period_ns)
{
	struct gpu_times *gpu = data;
	struct gpu_times_process *process, *next;

	gpu->windows = true;
	HASH_ITER (hh, gpu->processes, process, next)
		unrecorded_end(&process->unrecorded);
	modules_lock(gpu->options.modules);
	modules_miss(gpu->options.modules, MISS_GPU_WINDOWS, NULL, NULL, 0,
	             "GPU times of some %.1f s in every %.1f s only, since they cost process %u "
	             "some %.0f %% of its time",
	             (double)window_ns / 1e9, (double)period_ns / 1e9, pid, percent);
	modules_unlock(gpu->options.modules);
}

static void on_probes_news(void *data, uint32_t pid, const struct agent_probes_answer *answer)
{
	const struct gpu_times *gpu = data;

	gpu->options.probes.news(gpu->options.probes_data, pid, answer);
}

int gpu_open(const struct gpu_options *options, struct gpu_times **result, struct err *err)
{
	const struct capture_gpu *settings = options->settings;
	struct gpu_times *gpu = xcalloc(1, sizeof(*gpu));
	struct agents_options agents = {
		.kinds = settings->kinds | (options->launches ? AGENT_WANT_ARGUMENTS : 0) |
		         (options->nodes ? AGENT_WANT_NODES : 0),
		.window_ns = settings->window_ns,
		.period_ns = settings->period_ns,
		.window_percent = settings->window_percent,
		.ring_bytes = options->ring_bytes                    ? options->ring_bytes
		              : options->launches || options->probed ? TOLD_RING_BYTES
		                                                     : 0,
		.cupti = settings->cupti,
		.record = gpu_on_record,
		.state = gpu_on_state,
		.dear = on_dear,
		.unmeasured = gpu_on_unmeasured,
		.wanted = is_wanted,
		.data = gpu,
	};
	int r;

	gpu->options = *options;
	gpu->windows = settings->window_ns && settings->window_percent <= 0;
	agents.probes = options->probes;
	agents.probes.news = on_probes_news;
	gpu->order = gpu_order_new();
	gpu->tids = tids_new();
	gpu->targets = gpu_targets_new(options->target == TARGET_COMMAND, enter, gpu);
	r = agents_new(&agents, &gpu->agents, err);
	if (r) {
		gpu->agents = NULL;
		gpu_free(gpu);
		return r;
	}
	note_windows(gpu);
	if (options->launches) {
		gpu->calls = gpu_calls_new(programs_state(options->programs));
		gpu->launches = gpu_launches_new(options->modules, options->programs);
	}
	*result = gpu;
	return 0;
}

void gpu_free(struct gpu_times *gpu)
{
	struct gpu_times_process *process, *next;

	if (!gpu)
		return;
	agents_free(gpu->agents);
	gpu_targets_free(gpu->targets);
	gpu_calls_free(gpu->calls);
	gpu_launches_free(gpu->launches);
	gpu_order_free(gpu->order);
	tids_free(gpu->tids);
	HASH_ITER (hh, gpu->processes, process, next) {
		process_drop(gpu, process);
	}
	free(gpu);
}

struct agents *gpu_agents(struct gpu_times *gpu)
{
	return gpu->agents;
}

struct order_source gpu_source(struct gpu_times *gpu)
{
	return gpu->calls ? gpu_calls_source(gpu->calls) : (struct order_source){ 0 };
}

int gpu_environment(struct gpu_times *gpu, char *const **environment, struct err *err)
{
	return agents_environment(gpu->agents, environment, err);
}

void gpu_begin(struct gpu_times *gpu, uint64_t now_ns, pid_t command, bool held)
{
	gpu->held = held;
	gpu->begin_ns = gpu->now_ns = now_ns;
	gpu->command = command;
}

int gpu_fd(const struct gpu_times *gpu)
{
	return agents_fd(gpu->agents);
}

/* cuInit opens this device, and who only asks NVML for GPUs does not: a launcher that is to fork
 * its workers would be initialised by CUPTI. */
#define CUDA_DEVICE "/dev/nvidia-uvm"

#define PF_FORKNOEXEC 0x40 /* include/linux/sched.h */

/* What was open at the fork is open in a child, which cannot use the CUDA that its parent uses. If
 * it has one of its own, its first call tells. */
static bool is_copy(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, 0, &stat) && stat.flags & PF_FORKNOEXEC;
}

void gpu_running(struct gpu_times *gpu, pid_t pid)
{
	if (proc_has_open(pid, CUDA_DEVICE) && !is_copy(pid))
		gpu_targets_running(gpu->targets, pid, gpu->now_ns);
}

void gpu_called(struct gpu_times *gpu, const struct wire_call *call)
{
	const struct module *module = NULL;
	const struct hook *hook = modules_hook(gpu->options.modules, call->head.hook, &module);

	gpu_targets_called(gpu->targets, call, hook, module, gpu->now_ns);
}

void gpu_forked(struct gpu_times *gpu)
{
	if (gpu->launches)
		gpu_launches_unsettle(gpu->launches, gpu->now_ns);
}

/* Whether what it launches is to be told of, whatever it consists of. */
static bool has_work(const struct gpu_times *gpu, const struct call *call)
{
	const uint32_t nodes = AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS;
	uint32_t kinds = gpu->options.settings->kinds;

	if (call->op == OP_LAUNCH)
		return kinds & AGENT_WANT_KERNELS;
	return kinds & AGENT_WANT_GRAPHS || (kinds & nodes) == nodes;
}

void gpu_launched(struct gpu_times *gpu, uint32_t pid, const struct call *call)
{
	struct gpu_times_process *process = gpu_process_find(gpu, pid);

	if (!process || !process->since_ns || !gpu->options.all_launches || gpu->windows ||
	    !has_work(gpu, call))
		return;
	if (call->begin_ns >= process->since_ns &&
	    (!process->until_ns || call->begin_ns < process->until_ns))
		unrecorded_launched(&process->unrecorded, call->correlation);
}

void gpu_node_made(struct gpu_times *gpu, uint32_t pid, uint64_t node, const struct stack *stack)
{
	struct gpu_times_process *process = gpu_process_find(gpu, pid);

	if (process)
		gpu_nodes_made(gpu_process_nodes(process), node, stack);
}

bool gpu_is_double(struct gpu_times *gpu, const struct wire_head *record)
{
	const struct hook *hook;

	if (!gpu->calls || record->type != WIRE_CALL)
		return false;
	hook = modules_hook(gpu->options.modules, record->hook, NULL);
	return hook && hook->group == HOOK_LAUNCH &&
	       gpu_calls_is_double(gpu->calls, (const struct wire_call *)record);
}

/* ---- turns --------------------------------------------------------------------------------- */

/* What a consumer said while agents were read. */
static int failed(const struct gpu_times *gpu, struct err *err)
{
	if (gpu->failure.code)
		*err = gpu->failure;
	return gpu->failure.code;
}

static bool tells_of_launches(void *data, pid_t pid)
{
	const struct gpu_times *gpu = data;
	const struct gpu_times_process *process = gpu_process_find(gpu, (uint32_t)pid);

	return process && process->running && gpu_targets_driver(gpu->targets, pid);
}

int gpu_turn(struct gpu_times *gpu, uint64_t now_ns, struct err *err)
{
	const struct gpu_item *first;
	int r;

	gpu->now_ns = now_ns;
	agents_turn(gpu->agents, now_ns);
	r = failed(gpu, err);
	gpu_order_each_new(gpu->order, now_ns - CALLS_NS, gpu_find_call, gpu);
	while (!r && (first = gpu_order_first(gpu->order)) && gpu_may_pass(gpu, first))
		r = gpu_pass_first(gpu, err);
	if (gpu->stopping)
		return r;
	gpu_targets_turn(gpu->targets, now_ns);
	if (gpu->launches)
		gpu_launches_turn(gpu->launches,
		                  gpu_targets_all(gpu->targets, tells_of_launches, gpu), now_ns);
	return r;
}

#define CLOCKS_MOST_NS 1000000u /* that a GPU's clock is ahead; some microseconds, as a rule */

/*
 * What a program that ended at `end_ns` had begun before `time_ns`, passed on; and that it had been
 * there, forgotten. What others' work ended before goes first. Calls until the program's end have
 * come, and those of work that ended later may not have: whatever it says, nothing waits less for
 * its sake, and its own work of then cannot be.
 */
static int settle(struct gpu_times *gpu, pid_t pid, uint64_t end_ns, uint64_t time_ns,
                  struct err *err)
{
	const struct process *process;
	int r = failed(gpu, err);

	if (!r && gpu_order_count(gpu->order)) {
		uint64_t last_ns;

		process = pipeline_process(gpu->options.pipeline, (uint32_t)pid);
		last_ns = gpu_order_last_of(gpu->order, process, time_ns);
		end_ns += CLOCKS_MOST_NS;
		r = gpu_pass_until(gpu, last_ns < end_ns ? last_ns : end_ns, err);
		if (last_ns > end_ns)
			gpu_order_orphan(gpu->order, process, time_ns);
	}
	correlate_forget(gpu->options.correlate, (uint32_t)pid, time_ns);
	tids_forget(gpu->tids, (uint32_t)pid);
	gpu_targets_forget(gpu->targets, pid);
	if (gpu->calls)
		gpu_calls_forget(gpu->calls, (uint32_t)pid);
	return r;
}

/* Its program ends: where its agent had not come, what it did has no GPU times. */
static void forget_target(struct gpu_times *gpu, pid_t pid, const char *why)
{
	bool not_in = is_not_in(gpu, pid), due = gpu_targets_forget(gpu->targets, pid);

	if (not_in && due && gpu->held)
		tell_no_agent(gpu, pid);
	else if (not_in)
		tell_not_in(gpu, pid, why);
}

int gpu_exit(struct gpu_times *gpu, pid_t pid, uint64_t time_ns, struct err *err)
{
	struct gpu_times_process *process = MAP_FIND(gpu->processes, &pid);
	int r;

	agents_gone(gpu->agents, pid);
	forget_target(gpu, pid, "it ended before its agent measured");
	if (!process && !(process = MAP_FIND(gpu->processes, &pid)))
		return 0;
	r = settle(gpu, pid, time_ns, UINT64_MAX, err);
	process_drop(gpu, process);
	return r;
}

/* Nothing is known of the agent of its new program. */
static void renew(struct gpu_times_process *process)
{
	free(process->told);
	process->told = NULL;
	process->measured = false;
	gpu_nodes_free(process->nodes);
	process->nodes = NULL;
}

int gpu_exec(struct gpu_times *gpu, pid_t pid, uint64_t time_ns, struct err *err)
{
	struct gpu_times_process *process;
	int r;

	agents_turn_of(gpu->agents, pid, gpu->now_ns); /* what the program before wrote last */
	gpu_forked(gpu);
	forget_target(gpu, pid, "it became another program before its agent measured");
	process = MAP_FIND(gpu->processes, &pid);
	if (!process)
		return 0;
	if (gpu_order_count(gpu->order)) {
		gpu->exec_from = pipeline_process(gpu->options.pipeline, (uint32_t)pid);
		gpu->exec_ns = time_ns;
	}
	r = settle(gpu, pid, time_ns, time_ns, err);
	gpu->unrecorded += unrecorded_end(&process->unrecorded); /* calls are numbered anew */
	if (process->state_ns > time_ns) /* the new program's agent is there already */
		gpu_targets_came(gpu->targets, pid);
	else
		renew(process);
	return r;
}

void gpu_execed(struct gpu_times *gpu, pid_t pid)
{
	if (!gpu->exec_from)
		return;
	gpu_order_move(gpu->order, gpu->exec_from, gpu->exec_ns,
	               pipeline_process(gpu->options.pipeline, (uint32_t)pid));
	gpu->exec_from = NULL;
}

/* ---- the end ------------------------------------------------------------------------------- */

static bool tell_too_late(void *data, pid_t pid)
{
	struct gpu_times *gpu = data;

	if (is_not_in(gpu, pid)) {
		tell_not_in(gpu, pid, "the trace ended before its agent measured");
		gpu_process_get(gpu, (uint32_t)pid)->too_late = true;
	}
	return true;
}

struct awaited {
	const struct gpu_times *gpu;
	bool any;
};

static bool look_whether_awaited(void *data, pid_t pid)
{
	struct awaited *awaited = data;

	awaited->any |= is_not_in(awaited->gpu, pid);
	return !awaited->any;
}

bool gpu_is_awaited(const struct gpu_times *gpu)
{
	struct awaited awaited = { .gpu = gpu };

	gpu_targets_all(gpu->targets, look_whether_awaited, &awaited);
	return awaited.any || agents_any_begins(gpu->agents);
}

bool gpu_is_on_its_way(const struct gpu_times *gpu, const struct wire_call *open)
{
	const struct hook *hook = modules_hook(gpu->options.modules, open->head.hook, NULL);
	pid_t pid = (pid_t)open->head.tgid;
	const struct gpu_times_process *process = MAP_FIND(gpu->processes, &pid);

	return hook && !strcmp(hook->name, "cuInit") &&
	       (!process || (!process->measured && !process->told));
}

bool gpu_measured(const struct gpu_times *gpu)
{
	return gpu->measured;
}

bool gpu_came_to_nothing(const struct gpu_times *gpu)
{
	return gpu->missed && !gpu->measured;
}

void gpu_stop(struct gpu_times *gpu)
{
	gpu_targets_all(gpu->targets, tell_too_late, gpu);
	gpu->stopping = true;
	if (gpu->launches)
		gpu_launches_put_back(gpu->launches, gpu->now_ns);
	agents_stop(gpu->agents);
}

bool gpu_stopped(const struct gpu_times *gpu)
{
	return agents_stopped(gpu->agents);
}

int gpu_finish(struct gpu_times *gpu, struct err *err)
{
	int r;

	if (!agents_stopped(gpu->agents))
		agents_abandon(gpu->agents);
	r = failed(gpu, err);
	return r ? r : gpu_pass_until(gpu, UINT64_MAX, err);
}

void gpu_fill_lost(const struct gpu_times *gpu, uint64_t lost[LOST_COUNT])
{
	struct agents_lost agents;

	agents_lost(gpu->agents, &agents);
	lost[LOST_LATE] += gpu->late;
	lost[LOST_GPU_RING] += agents.ring;
	lost[LOST_GPU_BUFFERS] += agents.buffers;
	lost[LOST_TOO_DEEP] += agents.ranges;
	lost[LOST_GPU_TIMES] += agents.times + gpu->bad_times;
	lost[LOST_GPU_CALLS] += gpu->no_call;
	lost[LOST_GPU_RECORDS] += gpu->bad_records;
	lost[LOST_OVER_BUDGET] += gpu->crowded;
	lost[LOST_GPU_UNRECORDED] += gpu->unrecorded;
	if (gpu->calls)
		lost[LOST_UNREADABLE] += gpu_calls_unreadable(gpu->calls);
	if (gpu->calls)
		lost[LOST_QUEUE] += gpu_calls_refused(gpu->calls);
}

uint64_t gpu_turned_away(const struct gpu_times *gpu)
{
	struct agents_lost agents;

	agents_lost(gpu->agents, &agents);
	return agents.turned_away;
}

void gpu_fill_run(const struct gpu_times *gpu, struct run_info *run)
{
	run->gpu_times = gpu->measured || (!gpu->missed && !gpu_is_awaited(gpu)); /* none ran */
	run->gpu_clock_error_ns =
		gpu->early_ns > gpu->clock_error_ns ? gpu->early_ns : gpu->clock_error_ns;
}
