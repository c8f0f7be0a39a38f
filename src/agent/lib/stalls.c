// SPDX-License-Identifier: MIT
#include "agent/lib/stalls.h"

#include "agent/lib/glibc.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/gate.h"
#include "agent/lib/intern.h"
#include "agent/lib/pcs_abi.h"
#include "agent/lib/stalls_contexts.h"
#include "agent/lib/stalls_device.h"
#include "agent/lib/stalls_sums.h"
#include "agent/lib/writer.h"

#define MS 1000000ull
/*
 * Sampling is enabled for an episode of some windows: on an H200 launches take up to a fifth longer
 * while it is, those of several threads three times as long, and to enable it stops the program for
 * 0.15 to 0.5 s, to end a window for 3 to 5 ms.
 */
#define EPISODE_NS (2000 * MS)
#define BETWEEN_NS (60000 * MS) /* episodes, on average */
/* Where all had fewer samples, and little ran, as of a program that starts or waits: twice that,
 * and twice again. Kernels that are too short to be met are not met sooner either. */
#define SAMPLES_FEW 1000
#define RAN_FEW     2000 /* activities */
#define SOON_NS     (1000 * MS)
#define WINDOW_NS   (20 * MS)
#define PAUSE_NS    (150 * MS) /* between windows, on average */
#define LOOK_NS     (50 * MS)  /* contexts may come, calls may end */
/* Calls of the driver that were under way, and captures, when callbacks came are over by then. */
#define SETTLE_NS     (3000 * MS)
#define GATE_END_NS   (200 * MS)
#define EXIT_IDLE_NS  (100 * MS)
#define GATE_NS       (20 * MS)   /* until no thread is in a call; else later */
#define IDLE_LEAST_NS (250 * MS)  /* until the GPU is done; else later, and twice as long */
#define IDLE_MOST_NS  (700 * MS)  /* with the former less than the gate lasts */
#define VAIN_NS       (5000 * MS) /* then it is told, and tried less often */
#define SLOW_NS       (50 * MS) /* a call that took so long, of a GPU without work, is the last one */

#define PERIOD        18 /* 2^18 cycles */
#define SCRATCH_BYTES ((size_t)4 << 20)
#define REASONS       128
#define ROOM          4096 /* PCs that one call gives */
#define GETS_MOST     16   /* calls for one window */

/* What CUPTI allocates for names and never frees: the header leaves that to who asks, but says that
 * other records may share them. They are let be, as many as this. */
#define NAMES_MOST 65536

/* The memory that CUPTI writes to. Once it is there it stays: a context that is destroyed may write
 * to it for as long as that takes. */
struct output {
	struct buffer {
		struct pcs_data data;
		struct pcs_pc pcs[ROOM];
		struct pcs_stall stalls[ROOM][REASONS];
	} own[CONTEXTS], given; /* of CUPTI while a context is enabled; for each call */
	char names[REASONS][PCS_REASON_NAME];
	char *name[REASONS];
	uint32_t index[REASONS];
	size_t n_reasons;
	const char *seen[NAMES_MOST]; /* by a hash of the pointer */
	size_t n_names;
};

/* CUPTI's functions; NULL where it is too old. */
static struct functions {
#define FUNCTION(name, argument) uint32_t (*name)(argument * given);
	PCS_FUNCTIONS(FUNCTION)
#undef FUNCTION
} f;

static uint32_t open; /* a session has them */
static bool busy;     /* its thread, with them */

/* The session's thread alone: */
static struct output *output;
static struct intern *intern;
static struct sums *sums;
static struct {
	void *idle; /* an event */
	bool runs;  /* from Start to Stop */
	bool ran;   /* was started before, since it was enabled */
	bool fails; /* is not enabled again */
} slots[CONTEXTS];
static uint64_t begin_ns, end_ns;  /* of the window that is open, or was last */
static uint64_t close_ns, next_ns; /* when it is to be closed, or the next one opened; 0: not */
static uint64_t episode_ns;        /* when it ends; 0: none is on */
static uint64_t episode_samples;
static uint64_t episode_before; /* activities that were told of before it */
static uint64_t between_ns;     /* this one and the next, on average */
static uint64_t idle_ns;        /* how long is waited for the GPU */
static uint64_t since_ns;       /* it is tried in vain to begin or to end a window; 0: it is not */
static bool left;               /* enabled for good: the GPU was never done */
static uint64_t cost_ns, lot;
static uint32_t told; /* bits of enum agent_stalls_told */

/* ---- telling ------------------------------------------------------------------------------- */

static void tell(uint32_t what, uint32_t code, uint64_t first, uint64_t second)
{
	const struct agent_stalls_told record = {
		.head = { .bytes = sizeof(record), .type = AGENT_STALLS_TOLD },
		.what = what,
		.code = code,
		.first = first,
		.second = second,
		.time_ns = clock_now(),
	};
	struct ring *ring;

	if (told & 1u << what)
		return;
	told |= 1u << what;
	ring = writer_hold(WRITER_OPEN);
	if (!ring)
		return;
	ring_put(ring, &record.head);
	writer_release();
}

/* ---- a context is enabled ------------------------------------------------------------------ */

static struct pcs_context of(void *context)
{
	return (struct pcs_context){ .size = PCS_CONTEXT_BYTES, .context = context };
}

static bool know_reasons(void *context)
{
	size_t n = 0;
	struct pcs_count count = { .size = PCS_COUNT_BYTES, .context = context, .n = &n };
	struct pcs_reasons reasons = {
		.size = PCS_REASONS_BYTES,
		.context = context,
		.index = output->index,
		.names = output->name,
	};
	uint32_t result = f.cuptiPCSamplingGetNumStallReasons(&count);

	if (!result && (!n || n > REASONS))
		result = CUPTI_UNKNOWN;
	reasons.n = n;
	if (!result)
		result = f.cuptiPCSamplingGetStallReasons(&reasons);
	if (result)
		tell(AGENT_STALLS_REFUSED, result, AGENT_STALLS_IN_REASONS, 0);
	output->n_reasons = result ? 0 : n;
	sums_reasons(sums, output->n_reasons, output->index, output->name);
	return !result;
}

/* On GPUs newer than Hopper others report that CUPTI gives nothing with a period or a buffer that
 * was chosen. */
static bool configure(void *context, const struct device *device, struct buffer *own)
{
	struct pcs_attribute attributes[] = {
		{ .type = PCS_REASONS,
		  .reasons = { .n = output->n_reasons, .index = output->index } },
		{ .type = PCS_MODE, .number = PCS_MODE_CONTINUOUS },
		{ .type = PCS_START_STOP, .number = 1 },
		{ .type = PCS_FORMAT, .number = PCS_FORMAT_PARSED },
		{ .type = PCS_BUFFER, .buffer = &own->data },
		{ .type = PCS_SCRATCH_BYTES, .bytes = SCRATCH_BYTES },
		{ .type = PCS_HARDWARE_BYTES, .bytes = device->buffer_bytes },
		{ .type = PCS_PERIOD, .number = PERIOD },
	};
	struct pcs_configure given = {
		.size = PCS_CONFIGURE_BYTES,
		.context = context,
		.n = sizeof(attributes) / sizeof(attributes[0]) - (device->buffer_is_fixed ? 2 : 0),
		.attributes = attributes,
	};
	uint32_t result = f.cuptiPCSamplingSetConfigurationAttribute(&given), which = 0;

	for (uint32_t i = 0; result && i < given.n; i++) {
		if (attributes[i].status)
			which = attributes[i].type;
	}
	if (result)
		tell(AGENT_STALLS_REFUSED, result, AGENT_STALLS_IN_CONFIGURING, which);
	return !result;
}

/* The context is in use. */
/* `fails`: it is, and of no use: it is to be switched off when the GPU is done. */
static bool enable(void *context, struct buffer *own, bool *fails)
{
	struct pcs_context given = of(context);
	struct device device;
	uint64_t from_ns = clock_now();
	uint32_t result;

	if (!device_look(&device)) {
		tell(AGENT_STALLS_REFUSED, 0, AGENT_STALLS_IN_DRIVER, 0);
		return false;
	}
	if (device.free_bytes < device.needed_bytes) {
		tell(AGENT_STALLS_MEMORY, 0, device.free_bytes, device.needed_bytes);
		return false;
	}
	result = f.cuptiPCSamplingEnable(&given);
	if (result) {
		tell(AGENT_STALLS_REFUSED, result, AGENT_STALLS_IN_ENABLING, 0);
		return false;
	}
	*fails = !know_reasons(context) || !configure(context, &device, own);
	if (*fails)
		return true;
	tell(AGENT_STALLS_BEGUN, 0, clock_now() - from_ns, device.buffer_bytes);
	return true;
}

/* One at a time: it takes long, and threads are held. */
static void enable_new(void)
{
	for (size_t i = 0; i < CONTEXTS; i++) {
		bool fails = false, is;
		void *context;

		if (!contexts_use(i, CONTEXT_NEW, &context))
			continue;
		is = enable(context, &output->own[i], &fails);
		slots[i].idle = NULL; /* an event of a context that was here before went with it */
		slots[i].runs = slots[i].ran = false;
		slots[i].fails = fails;
		contexts_set(i, context, is ? CONTEXT_ON : CONTEXT_OFF);
		contexts_unuse();
		return;
	}
}

/* ---- what comes ---------------------------------------------------------------------------- */

/* Whether there is room to let one more of CUPTI's texts be. */
static bool know_name(const char *name)
{
	uint64_t hash = (uint64_t)(uintptr_t)name * 0x9e3779b97f4a7c15ull >> 40;

	for (size_t i = 0; i < NAMES_MOST; i++) {
		const char **slot = &output->seen[(hash + i) % NAMES_MOST];

		if (*slot == name)
			return true;
		if (*slot)
			continue;
		*slot = name;
		output->n_names++;
		break;
	}
	return output->n_names < NAMES_MOST / 4 * 3;
}

static bool take_data(const struct pcs_data *data)
{
	bool room = true;

	for (size_t i = 0; i < data->n && i < ROOM; i++) {
		const struct pcs_pc *pc = &data->pcs[i];

		if (!pc->name)
			continue;
		room &= know_name(pc->name);
		for (size_t j = 0; j < pc->n_stalls && j < REASONS; j++)
			sums_add(sums, pc, &pc->stalls[j]);
	}
	sums_add_all(sums, data);
	episode_samples += data->samples;
	return room;
}

/* Of a context in use. False: it gives nothing any more. */
static bool get(size_t place, void *context)
{
	struct pcs_data *data = &output->given.data;
	struct pcs_get given = { .size = PCS_GET_BYTES, .context = context, .data = data };
	uint32_t result = 0;

	for (int i = 0; i < GETS_MOST && !result; i++) {
		data->n = data->left = 0;
		data->samples = data->dropped = data->foreign_samples = 0;
		data->hardware_full = 0;
		result = f.cuptiPCSamplingGetData(&given);
		if (data->hardware_full)
			tell(AGENT_STALLS_FULL, result, 0, 0);
		else if (result)
			tell(AGENT_STALLS_REFUSED, result, AGENT_STALLS_IN_GETTING, 0);
		if (result)
			break;
		if (data->n)
			contexts_settle(place, context);
		if (!take_data(data)) {
			tell(AGENT_STALLS_NAMES, 0, output->n_names, 0);
			return false;
		}
		if (!data->left)
			break;
	}
	return !result || data->hardware_full;
}

/* ---- windows ------------------------------------------------------------------------------- */

/* Calls `function` for each context that is on, while the gate lasts; whether it did so. */
static bool each(bool (*function)(size_t place, void *context))
{
	bool any = false;

	for (int i = 0; i < CONTEXTS; i++) {
		void *context;

		if (!gate_lasts())
			break;
		if (!contexts_use(i, CONTEXT_ON, &context))
			continue;
		any |= function(i, context);
		contexts_unuse();
	}
	return any;
}

/*
 * Whether no GPU has work of the program's, which gives it none meanwhile: CUPTI would wait for a
 * kernel that may itself wait for a thread that is held.
 */
static bool all_done(void)
{
	uint64_t until_ns = clock_now() + idle_ns;

	for (int i = 0; i < CONTEXTS; i++) {
		void *context;
		bool done;

		if (!contexts_use(i, CONTEXT_ON, &context))
			continue;
		done = device_is_idle(context, &slots[i].idle, until_ns);
		contexts_unuse();
		if (!done)
			return false;
	}
	return true;
}

/* What was not given so far, CUPTI leaves in the memory that is its own until then. */
static bool disable(size_t i, void *context)
{
	struct pcs_context given = of(context);
	struct pcs_data *rest = &output->own[i].data;

	rest->n = 0;
	left |= f.cuptiPCSamplingDisable(&given) != 0;
	if (rest->n)
		take_data(rest);
	rest->n = 0;
	device_forget(&slots[i].idle);
	contexts_set(i, context, slots[i].fails ? CONTEXT_OFF : CONTEXT_NEW);
	return true;
}

/* Whether sampling may go on after a call that began then. */
static bool was_fast(uint64_t from_ns, uint32_t in)
{
	uint64_t took_ns = clock_now() - from_ns;

	if (took_ns > SLOW_NS)
		tell(AGENT_STALLS_SLOW, 0, took_ns, in);
	return took_ns <= SLOW_NS;
}

static bool start(size_t i, void *context)
{
	struct pcs_context given = of(context);
	uint32_t result;
	uint64_t from_ns = clock_now();

	if (slots[i].fails)
		return false;
	result = f.cuptiPCSamplingStart(&given);
	if (result)
		tell(AGENT_STALLS_REFUSED, result, AGENT_STALLS_IN_STARTING, 0);
	slots[i].runs = !result;
	slots[i].fails = result || (slots[i].ran && !was_fast(from_ns, AGENT_STALLS_IN_STARTING));
	slots[i].ran = true;
	return slots[i].runs;
}

static bool stop(size_t i, void *context)
{
	struct pcs_context given = of(context);
	uint64_t from_ns = clock_now();
	uint32_t result;

	if (!slots[i].runs)
		return false;
	result = f.cuptiPCSamplingStop(&given);
	if (result)
		tell(AGENT_STALLS_REFUSED, result, AGENT_STALLS_IN_STOPPING, 0);
	slots[i].runs = false;
	slots[i].fails |= result || !was_fast(from_ns, AGENT_STALLS_IN_STOPPING);
	from_ns = clock_now();
	slots[i].fails |=
		!result && (!get(i, context) || !was_fast(from_ns, AGENT_STALLS_IN_GETTING));
	return true;
}

/* What was added up, as records. */
static void write_sums(bool is_rest)
{
	const struct sums_window window = { begin_ns, end_ns, cost_ns, is_rest };
	struct ring *ring = writer_hold(WRITER_OPEN);

	if (!ring)
		return;
	sums_write(sums, intern, ring, &window);
	writer_release();
}

/* Between a half and one and a half of it: no step of the program's keeps pace with it. */
static uint64_t by_lot(uint64_t mean_ns)
{
	lot ^= lot << 13;
	lot ^= lot >> 7;
	lot ^= lot << 17;
	return mean_ns / 2 + lot % mean_ns;
}

/* It did not come to it: when to try once more. */
static uint64_t try_again(uint32_t why)
{
	uint64_t now_ns = clock_now();

	if (!since_ns)
		since_ns = now_ns;
	if (now_ns - since_ns < VAIN_NS)
		return now_ns + LOOK_NS;
	tell(why, 0, 0, 0);
	return now_ns + by_lot(BETWEEN_NS);
}

static uint64_t activities_told(void)
{
	return __atomic_load_n(&writer_shared()->activities, __ATOMIC_RELAXED);
}

/* Under the gate. */
static void begin_episode(void)
{
	if (!episode_ns) {
		episode_ns = clock_now() + EPISODE_NS;
		episode_samples = 0;
		episode_before = activities_told();
	}
	enable_new();
}

/* When the next one begins. */
static uint64_t end_episode(void)
{
	uint64_t ran = activities_told() - episode_before;

	episode_ns = 0;
	if (episode_samples >= SAMPLES_FEW || ran >= RAN_FEW || between_ns > BETWEEN_NS / 2)
		between_ns = BETWEEN_NS;
	else
		between_ns *= 2;
	return clock_now() + by_lot(between_ns);
}

static bool fails_one(void)
{
	bool any = false;

	for (size_t i = 0; i < CONTEXTS; i++)
		any |= slots[i].fails && contexts_is(i, CONTEXT_ON);
	return any;
}

static bool runs_one(void)
{
	bool any = false;

	for (size_t i = 0; i < CONTEXTS; i++)
		any |= slots[i].runs && contexts_is(i, CONTEXT_ON);
	return any;
}

static void begin_window(void)
{
	uint64_t from_ns;

	if (!contexts_any(CONTEXT_NEW) && !contexts_any(CONTEXT_ON)) {
		episode_ns = 0;
		next_ns = clock_now() + LOOK_NS;
		return;
	}
	if (!gate_close(GATE_NS)) {
		next_ns = try_again(AGENT_STALLS_CALLS);
		return;
	}
	from_ns = clock_now();
	begin_episode();
	each(start);
	gate_open();
	begin_ns = end_ns = clock_now();
	cost_ns = begin_ns - from_ns;
	since_ns = 0;
	if (contexts_any(CONTEXT_ON)) {
		next_ns = 0;
		close_ns = begin_ns + WINDOW_NS;
		return;
	}
	write_sums(true);
	next_ns = begin_ns + LOOK_NS;
}

static void end_window(void)
{
	uint64_t from_ns;
	bool over;

	if (!gate_close(GATE_NS)) {
		close_ns = try_again(AGENT_STALLS_CALLS);
		return;
	}
	if (!all_done()) {
		gate_open();
		idle_ns = idle_ns * 2 < IDLE_MOST_NS ? idle_ns * 2 : IDLE_MOST_NS;
		close_ns = try_again(AGENT_STALLS_WORK);
		return;
	}
	from_ns = clock_now();
	over = from_ns >= episode_ns;
	end_ns = from_ns;
	each(stop);
	if (over || fails_one())
		each(disable);
	gate_open();
	cost_ns += clock_now() - from_ns;
	write_sums(false);
	if (runs_one() ||
	    (over && contexts_any(CONTEXT_ON))) { /* it took so long that others are left */
		close_ns = clock_now() + LOOK_NS;
		return;
	}
	since_ns = 0;
	close_ns = 0;
	idle_ns = IDLE_LEAST_NS;
	next_ns = over ? end_episode() : clock_now() + by_lot(PAUSE_NS);
}

/* ---- the session's side -------------------------------------------------------------------- */

static bool resolve(void *library)
{
	bool all = true;

#define FUNCTION(name, argument)                                                                   \
	f.name = (uint32_t(*)(argument *))dlsym(library, #name);                                   \
	all &= f.name != NULL;
	PCS_FUNCTIONS(FUNCTION)
#undef FUNCTION
	return all;
}

static void *map(size_t bytes)
{
	void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mapped == MAP_FAILED ? NULL : mapped;
}

static void prepare(struct buffer *buffer)
{
	buffer->data.size = sizeof(buffer->data);
	buffer->data.room = ROOM;
	buffer->data.pcs = buffer->pcs;
	for (size_t i = 0; i < ROOM; i++) {
		buffer->pcs[i].size = sizeof(buffer->pcs[i]);
		buffer->pcs[i].stalls = buffer->stalls[i];
	}
}

static void open_output(void)
{
	if (!output)
		output = map(sizeof(*output));
	if (!output)
		return;
	prepare(&output->given);
	for (size_t i = 0; i < CONTEXTS; i++)
		prepare(&output->own[i]);
	for (size_t i = 0; i < REASONS; i++)
		output->name[i] = output->names[i];
}

static void free_all(void)
{
	intern_free(intern);
	sums_free(sums);
	intern = NULL;
	sums = NULL;
}

void stalls_open(void *library, uint32_t version, bool calls_are_open)
{
	told = 0;
	begin_ns = end_ns = close_ns = next_ns = episode_ns = cost_ns = 0;
	since_ns = 0;
	idle_ns = IDLE_LEAST_NS;
	lot = clock_now() | 1;
	if (version < CUPTI_VERSION_STALLS || !resolve(library)) {
		tell(AGENT_STALLS_OLD, 0, version, 0);
		gate_end();
		return;
	}
	open_output();
	intern = intern_new(writer_name_number);
	sums = sums_new();
	if (!output || !intern || !sums || !device_open()) {
		tell(AGENT_STALLS_REFUSED, 0, AGENT_STALLS_IN_DRIVER, 0);
		free_all();
		gate_end();
		return;
	}
	between_ns = SOON_NS;
	next_ns = clock_now() + (calls_are_open ? SETTLE_NS : 0);
	contexts_not_before(next_ns);
	contexts_open();
	open = 1;
}

uint64_t stalls_turn(uint64_t now_ns)
{
	if (!open)
		return 0;
	__atomic_store_n(&busy, true, __ATOMIC_RELAXED);
	if (close_ns && now_ns >= close_ns)
		end_window();
	if (next_ns && (now_ns >= next_ns || contexts_are_awaited()))
		begin_window();
	__atomic_store_n(&busy, false, __ATOMIC_RELAXED);
	return close_ns ? close_ns : next_ns;
}

bool stalls_are_sampled(void)
{
	return open && episode_ns;
}

/* Who exits may be in a call, and others as well: what is on stays on then. */
static void end_all(bool exits)
{
	idle_ns = exits ? EXIT_IDLE_NS : IDLE_MOST_NS;
	for (int i = 0; i < CONTEXTS && contexts_any(CONTEXT_ON); i++) {
		if (!gate_close(exits ? GATE_NS : GATE_END_NS))
			break;
		if (!all_done()) {
			gate_open();
			break;
		}
		if (close_ns && !exits)
			each(stop);
		if (close_ns)
			end_ns = clock_now();
		if (each(disable))
			write_sums(!close_ns || exits);
		gate_open();
	}
	left |= contexts_any(CONTEXT_ON);
}

void stalls_close(bool exits)
{
	__atomic_store_n(&busy, true, __ATOMIC_RELAXED);
	if (open && contexts_any(CONTEXT_ON))
		end_all(exits);
	open = 0;
	contexts_close();
	memset(slots, 0, sizeof(slots));
	free_all();
	gate_end();
	__atomic_store_n(&busy, false, __ATOMIC_RELAXED);
}

bool stalls_are_left(void)
{
	return left;
}

bool stalls_are_busy(void)
{
	return __atomic_load_n(&busy, __ATOMIC_RELAXED);
}

void stalls_forked(void)
{
	gate_forked();
	open = 0;
	busy = false;
	contexts_forked();
	if (output)
		munmap(output, sizeof(*output)); /* the child's copy */
	output = NULL;
	free_all();
}
