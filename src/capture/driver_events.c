// SPDX-License-Identifier: MIT
#include "capture/driver_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/xalloc.h"
#include "capture/uvm_queues.h"
#include "cuda/driver_words.h"
#include "cuda/api.h"
#include "probe/driver_functions.h"
#include "probe/kernel_log.h"

#define LOOK_NS       200000000 /* between two looks for modules */
#define SUMS_NS       100000000
#define FUNCTIONS_MAX 512
#define XIDS_MAX      64        /* that wait for their text */
#define XID_WAIT_NS   400000000 /* for the line of the kernel's log */
#define XID_LINES     32        /* a turn: more wait in the log */

/* Sums are told by records of our own. */
#define WIRE_DRIVER_SUM (WIRE_DRIVER_EVENT + 1)

struct sum_record {
	struct wire_head head; /* its time is that of reading, its place in the order */
	uint64_t begin_ns, end_ns;
	struct driver_key key;
	struct driver_sum sum;
};

_Static_assert((int)DRIVER_KINDS == (int)MANAGED_KINDS && (int)DRIVER_WAIT == (int)MANAGED_WAIT &&
                       (int)DRIVER_FATAL_FAULT == (int)MANAGED_FATAL_FAULT &&
                       DRIVER_NOT_KNOWN == MANAGED_NOT_KNOWN && DRIVER_SIZES == MANAGED_SIZES,
               "the programs have the numbers of the names");

/* A function that events have; made when the first one comes. */
struct driver_events_function {
	struct managed event;
	struct function function;
	struct api *made;
	char name[MANAGED_NAME];
};

struct driver_events {
	struct driver_events_options options;
	struct driver_functions *hooks[DRIVER_MODULES];
	bool failed[DRIVER_MODULES]; /* and told */
	struct uvm_queues *queues;   /* where functions of nvidia_uvm are not hooked */
	uint64_t looked_ns;
	uint64_t first_ns, summed_ns, before_ns; /* the first turn, the last two times of sums */
	struct kernel_log *log; /* where no trace event tells of Xids, or only their numbers */
	struct wire_driver_event xids[XIDS_MAX];
	size_t n_xids;
	struct driver_events_function *functions[FUNCTIONS_MAX];
	size_t n_functions;
	uint64_t now_ns;
	uint64_t lost, rest, dropped; /* of modules that are gone; Xids beyond their room */
};

struct driver_events *driver_events_new(const struct driver_events_options *options)
{
	struct driver_events *events = xcalloc(1, sizeof(*events));

	events->options = *options;
	events->log = kernel_log_open();
	return events;
}

void driver_events_free(struct driver_events *events)
{
	if (!events)
		return;
	for (int i = 0; i < DRIVER_MODULES; i++)
		driver_functions_free(events->hooks[i]);
	uvm_queues_free(events->queues);
	kernel_log_free(events->log);
	for (size_t i = 0; i < events->n_functions; i++) {
		api_free(events->functions[i]->made);
		free(events->functions[i]);
	}
	free(events);
}

/* ---- modules ------------------------------------------------------------------------------- */

/* What the driver tells by itself instead, where programs are not let onto its functions. */
static const char *instead(struct driver_events *events, enum driver_module module)
{
	if (module != DRIVER_UVM)
		return "";
	if (!events->queues)
		events->queues = uvm_queues_new(events->options.ring_bytes, events->options.notice,
		                                events->options.data);
	return "; faults and migrations of managed memory come from the driver's own queues";
}

static void open_module(struct driver_events *events, enum driver_module module)
{
	const struct driver_functions_options options = {
		.targets = programs_map(events->options.programs, "targets"),
		.cgroups = programs_map(events->options.programs, "cgroups"),
		.all = events->options.all,
		.cgroup = events->options.cgroup,
	};
	struct err err = { 0 };
	char text[1024];

	if (driver_functions_open(module, &options, &events->hooks[module], &err)) {
		events->failed[module] = true;
		snprintf(text, sizeof(text), "functions of %s are not hooked: %s%s",
		         driver_module_name(module), err.text, instead(events, module));
	} else if (events->now_ns > events->first_ns) {
		snprintf(text, sizeof(text), "functions of %s, which was loaded later, are hooked",
		         driver_module_name(module));
	} else {
		return;
	}
	events->options.notice(events->options.data, text);
}

static uint64_t lost_of(const struct driver_state *state)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(state->lost); i++)
		sum += state->lost[i];
	return sum;
}

static uint64_t rest_of(const struct driver_state *state)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < DRIVER_KINDS; i++)
		sum += state->rest[i];
	return sum;
}

static void close_module(struct driver_events *events, enum driver_module module)
{
	const struct driver_state *state = driver_functions_state(events->hooks[module]);

	events->lost += lost_of(state);
	events->rest += rest_of(state);
	driver_functions_free(events->hooks[module]);
	events->hooks[module] = NULL;
}

static void close_queues(struct driver_events *events)
{
	if (!events->queues)
		return;
	events->dropped += uvm_queues_dropped(events->queues);
	events->rest += uvm_queues_rest(events->queues);
	uvm_queues_free(events->queues);
	events->queues = NULL;
}

/* One that is gone may come again. */
static void look_for_modules(struct driver_events *events)
{
	for (int i = 0; i < DRIVER_MODULES; i++) {
		bool loaded = driver_module_loaded((enum driver_module)i);

		if (loaded && !events->hooks[i] && !events->failed[i])
			open_module(events, (enum driver_module)i);
		else if (!loaded && events->hooks[i])
			close_module(events, (enum driver_module)i);
		if (!loaded && i == DRIVER_UVM)
			close_queues(events);
		if (!loaded)
			events->failed[i] = false;
	}
}

/* ---- the driver's own queues --------------------------------------------------------------- */

/* The module may have been loaded since the last look, for this very process. */
static bool has_queues(struct driver_events *events, pid_t pid)
{
	if (!events->queues && !events->hooks[DRIVER_UVM])
		look_for_modules(events);
	return events->queues && (events->options.all || events->options.cgroup ||
	                          programs_target_has(events->options.programs, pid));
}

void driver_events_call(struct driver_events *events, const struct wire_driver_call *call)
{
	pid_t pid = (pid_t)call->head.tgid;

	if (call->head.words == SYSCALL_IOCTL && call->head.hook == WIRE_DRIVER_UVM &&
	    call->number == WIRE_UVM_BEGIN && !call->result && has_queues(events, pid))
		uvm_queues_add(events->queues, pid, call->fd);
}

void driver_events_runs(struct driver_events *events, pid_t pid)
{
	if (has_queues(events, pid))
		uvm_queues_look(events->queues, pid);
}

/* ---- records in ---------------------------------------------------------------------------- */

static void add(struct driver_events *events, const struct wire_head *record, size_t bytes)
{
	order_add(events->options.order, record, bytes);
}

/* One that has a number only waits for its line of the log. */
static void take_event(void *data, const struct wire_driver_event *event)
{
	struct driver_events *events = data;

	if (event->head.hook != DRIVER_XID || event->text[0] || !events->log)
		add(events, &event->head, sizeof(*event));
	else if (events->n_xids < XIDS_MAX)
		events->xids[events->n_xids++] = *event;
	else
		events->lost++;
}

uint64_t driver_sum_end_ns(const struct driver_sum *sum, uint64_t begin_ns, uint64_t now_ns)
{
	if (!sum->last_ns || sum->last_ns > now_ns) /* as it was being written */
		return now_ns;
	return sum->last_ns < begin_ns ? begin_ns : sum->last_ns;
}

static void take_sum(void *data, const struct driver_key *key, const struct driver_sum *sum)
{
	struct driver_events *events = data;
	struct sum_record record = { .key = *key, .sum = *sum };
	uint64_t begin_ns = *events->options.begin_ns;

	record.end_ns = driver_sum_end_ns(sum, begin_ns, events->now_ns);
	record.begin_ns = record.end_ns < events->summed_ns ? events->before_ns : events->summed_ns;
	if (record.begin_ns < begin_ns)
		record.begin_ns = begin_ns;
	if (record.begin_ns > record.end_ns)
		record.begin_ns = record.end_ns;

	record.head.type = WIRE_DRIVER_SUM;
	record.head.tgid = key->tgid;
	record.head.time_ns = events->now_ns;
	add(events, &record.head, sizeof(record));
}

/* ---- Xids ---------------------------------------------------------------------------------- */

static void pass_xid(struct driver_events *events, size_t at)
{
	struct wire_driver_event event = events->xids[at];

	event.head.time_ns = events->now_ns; /* its place in the order is now */
	if (!event.begin_ns)                 /* no program tells when it was */
		event.begin_ns = events->now_ns;
	add(events, &event.head, sizeof(event));
	events->n_xids--;
	memmove(&events->xids[at], &events->xids[at + 1],
	        (events->n_xids - at) * sizeof(events->xids[0]));
}

/* The line as text of the one that waits for it, or of a new one if no program tells of them. */
static void take_line(struct driver_events *events, const struct xid_text *xid)
{
	struct wire_driver_event event = { .xid = xid->number };
	size_t at = 0;

	while (at < events->n_xids && events->xids[at].xid != xid->number)
		at++;
	if (at == events->n_xids) {
		if (events->hooks[DRIVER_RM] && driver_functions_xids(events->hooks[DRIVER_RM]))
			return;
		event.head.type = WIRE_DRIVER_EVENT;
		event.head.hook = DRIVER_XID;
		if (events->n_xids == XIDS_MAX)
			pass_xid(events, 0);
		at = events->n_xids++;
		events->xids[at] = event;
	}
	if (xid->pid)
		snprintf(events->xids[at].text, DRIVER_TEXT, "pid=%u, name=%s, %s", xid->pid,
		         xid->name, xid->text);
	else
		snprintf(events->xids[at].text, DRIVER_TEXT, "%s", xid->text);
	pass_xid(events, at);
}

static void read_log(struct driver_events *events)
{
	struct xid_text xid;
	const char *line;

	for (int i = 0; events->log && i < XID_LINES; i++) {
		line = kernel_log_line(events->log);
		if (!line)
			break;
		if (xid_parse_line(line, &xid))
			take_line(events, &xid);
	}
	while (events->n_xids && events->now_ns - events->xids[0].begin_ns > XID_WAIT_NS)
		pass_xid(events, 0);
}

/* ---- turns --------------------------------------------------------------------------------- */

static void read_events(struct driver_events *events, bool last)
{
	for (int i = 0; i < DRIVER_MODULES; i++) {
		if (events->hooks[i])
			driver_functions_read(events->hooks[i], take_event, events);
	}
	if (events->queues)
		uvm_queues_read(events->queues, events->now_ns, last, take_event, events);
	read_log(events);
}

static void read_sums(struct driver_events *events, bool last)
{
	for (int i = 0; i < DRIVER_MODULES; i++) {
		if (events->hooks[i])
			driver_functions_sums(events->hooks[i], last, take_sum, events);
	}
	if (events->queues)
		uvm_queues_sums(events->queues, take_sum, events);
	events->before_ns = events->summed_ns;
	events->summed_ns = events->now_ns;
}

void driver_events_turn(struct driver_events *events, uint64_t now_ns)
{
	events->now_ns = now_ns;
	if (!events->first_ns)
		events->first_ns = events->summed_ns = events->before_ns = now_ns;
	if (now_ns - events->looked_ns >= LOOK_NS) {
		events->looked_ns = now_ns;
		look_for_modules(events);
	}
	read_events(events, false);
	if (now_ns - events->summed_ns >= SUMS_NS)
		read_sums(events, false);
}

void driver_events_finish(struct driver_events *events, uint64_t now_ns)
{
	events->now_ns = now_ns;
	for (int i = 0; i < DRIVER_MODULES; i++) {
		if (events->hooks[i])
			driver_functions_detach(events->hooks[i]);
	}
	read_events(events, true);
	while (events->n_xids)
		pass_xid(events, 0);
	read_sums(events, true);
}

/* ---- records out --------------------------------------------------------------------------- */

static const struct function *function_of(struct driver_events *events, const struct managed *event)
{
	struct driver_events_function *known;
	struct api_text text = { .cls = CLASS_OTHER };

	for (size_t i = 0; i < events->n_functions; i++) {
		known = events->functions[i];
		if (!memcmp(&known->event, event, sizeof(*event)))
			return &known->function;
	}
	if (events->n_functions == FUNCTIONS_MAX)
		return NULL;
	known = events->functions[events->n_functions++] = xcalloc(1, sizeof(*known));
	known->event = *event;
	text.name = managed_name(event, known->name);
	text.spec = managed_arguments(event);
	known->function = (struct function){
		.id = pipeline_function_number(events->options.pipeline),
		.name = known->name,
		.lib = managed_library(event),
		.layer = LAYER_KERNEL,
		.cls = CLASS_OTHER,
		.api = api_from_text(&text, &known->made),
	};
	return &known->function;
}

const struct process *driver_events_owner(struct pipeline *pipeline, uint32_t pid, uint64_t time_ns,
                                          bool is_target)
{
	const struct process *process = NULL;

	if (pid)
		process = pipeline_process_at(pipeline, pid, time_ns);
	if (!process && pid && is_target && !pipeline_process_known(pipeline, pid))
		process = pipeline_process(pipeline, pid);
	return process ? process : pipeline_driver_process(pipeline);
}

/* `call` has its times. The programs tell of targets; an Xid names whom it will. */
static int push(struct driver_events *events, const struct wire_head *head,
                const struct managed *what, struct call *call, struct err *err)
{
	bool is_target =
		head->tgid && (what->kind != MANAGED_XID ||
	                       programs_target_has(events->options.programs, (pid_t)head->tgid));
	struct event event = { .type = EVENT_OTHER_CALL,
		               .time_ns = call->end_ns,
		               .process = driver_events_owner(events->options.pipeline, head->tgid,
		                                              call->end_ns, is_target),
		               .tid = head->tid,
		               .call = call };
	const struct api_arg *args;

	call->function = function_of(events, what);
	if (!call->function) { /* more kinds than a machine has GPUs for */
		events->rest++;
		return 0;
	}
	call->args.n_args = (uint8_t)api_args(call->function->api, &args);
	return pipeline_pass(events->options.pipeline, &event, err);
}

static int push_sum(struct driver_events *events, const struct sum_record *record, struct err *err)
{
	const struct driver_sum *sum = &record->sum;
	struct managed what;
	struct call call = { .begin_ns = record->begin_ns, .end_ns = record->end_ns };
	AT_END(buf_free) struct buf sizes = { 0 };

	memset(&what, 0, sizeof(what)); /* compared as bytes */
	what.kind = record->key.kind;
	what.cause = record->key.cause;
	what.src = record->key.src;
	what.dst = record->key.dst;
	what.sum = true;
	call.args.arg[SUM_COUNT] = sum->count;
	call.args.arg[SUM_BYTES] = sum->bytes;
	call.args.arg[SUM_FIRST] = record->key.block ? sum->first : 0;
	call.args.arg[SUM_LAST] = record->key.block ? sum->last : 0;
	call.args.arg[SUM_TIME] = sum->ns;
	for (int i = 0; i < DRIVER_SIZES; i++)
		buf_printf(&sizes, "%s%llu", i ? " " : "", (unsigned long long)sum->sizes[i]);
	call.text = sizes.data;
	return push(events, &record->head, &what, &call, err);
}

static uint64_t between(uint64_t from, uint64_t to)
{
	return from && to > from ? to - from : 0;
}

/* Of the process that the driver names, where that is or was a target. */
static int push_xid(struct driver_events *events, const struct wire_driver_event *event,
                    struct err *err)
{
	struct wire_head head = event->head;
	struct xid_text xid = { 0 };
	struct managed what;
	struct call call = { .begin_ns = event->begin_ns,
		             .end_ns = event->begin_ns,
		             .text = event->text };

	memset(&what, 0, sizeof(what));
	what.kind = MANAGED_XID;
	what.xid = event->xid;
	xid_parse_text(event->text, &xid);
	head.tgid = xid.pid;
	call.args.arg[XID_NUMBER] = event->xid;
	call.args.arg[XID_PID] = xid.pid;
	return push(events, &head, &what, &call, err);
}

static int push_single(struct driver_events *events, const struct wire_driver_event *event,
                       struct err *err)
{
	struct call call = { .begin_ns = event->begin_ns, .end_ns = event->head.time_ns };
	struct managed what;

	if (event->head.hook == DRIVER_XID)
		return push_xid(events, event, err);
	if (event->posted_ns && event->head.hook != DRIVER_WAIT)
		call.end_ns = event->posted_ns;
	if (!call.begin_ns || call.begin_ns > call.end_ns)
		call.begin_ns = call.end_ns;
	memset(&what, 0, sizeof(what));
	what.kind = (uint8_t)event->head.hook;
	what.cause = event->cause;
	what.src = event->src;
	what.dst = event->dst;
	if (event->head.hook == DRIVER_WAIT) {
		call.args.arg[WAIT_TO_INTERRUPT] = between(event->begin_ns, event->interrupt_ns);
		call.args.arg[WAIT_TO_EVENT] = between(event->begin_ns, event->posted_ns);
		call.args.arg[WAIT_TO_RUN] = between(event->posted_ns, event->head.time_ns);
	} else {
		call.args.arg[SINGLE_ADDRESS] = event->address;
		call.args.arg[SINGLE_BYTES] = event->bytes;
	}
	return push(events, &event->head, &what, &call, err);
}

bool driver_events_is(const struct wire_head *record)
{
	return record->type == WIRE_DRIVER_EVENT || record->type == WIRE_DRIVER_SUM;
}

int driver_events_record(struct driver_events *events, const struct wire_head *record,
                         struct err *err)
{
	return record->type == WIRE_DRIVER_SUM
	               ? push_sum(events, (const struct sum_record *)record, err)
	               : push_single(events, (const struct wire_driver_event *)record, err);
}

void driver_events_fill_lost(const struct driver_events *events, uint64_t lost[LOST_COUNT])
{
	lost[LOST_RECORDS] += events->lost;
	lost[LOST_SUMS] += events->rest;
	for (int i = 0; i < DRIVER_MODULES; i++) {
		const struct driver_state *state =
			events->hooks[i] ? driver_functions_state(events->hooks[i]) : NULL;

		lost[LOST_RECORDS] += state ? lost_of(state) : 0;
		lost[LOST_SUMS] += state ? rest_of(state) : 0;
	}
	lost[LOST_RING_FULL] += events->dropped;
	if (events->queues) {
		lost[LOST_RING_FULL] += uvm_queues_dropped(events->queues);
		lost[LOST_SUMS] += uvm_queues_rest(events->queues);
	}
	if (events->log)
		lost[LOST_TEXTS] += kernel_log_lost(events->log);
}
