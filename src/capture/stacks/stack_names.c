// SPDX-License-Identifier: MIT
#include "capture/stacks/stack_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "stack/function_table.h"
#include "stack/symbols.h"
#include "trace/stack.h"
#include "unwind/python_code.h"
#include "unwind/unwinder.h"

#define CACHE_MAX   (256u << 10) /* addresses whose frames are remembered */
#define LINES_OWNER UINT32_MAX   /* no process: lines of one file are of all that map it */

_Static_assert(END_WHOLE == (int)STACK_WHOLE && END_TOO_DEEP == (int)STACK_TOO_DEEP &&
                       END_NO_MAPPING == (int)STACK_NO_MAPPING &&
                       END_NO_TABLE == (int)STACK_NO_TABLE && END_NO_RULE == (int)STACK_NO_RULE &&
                       END_UNREADABLE == (int)STACK_UNREADABLE && END_BAD == (int)STACK_BAD &&
                       END_BY_POINTERS == (int)STACK_BY_POINTERS,
               "the programs tell of ends by the numbers of the model");

struct place_key {
	uint64_t address;
	uint32_t process, call; /* call: a return address, the place is before it */
};

struct known_place {
	struct place_key key;
	const struct stack_frame *frame;
	UT_hash_handle hh;
};

struct stack_names {
	struct stack_names_options options;
	struct symbols *symbols;
	struct kernel_symbols *kernel; /* NULL until it is asked about */
	struct python_codes *codes;
	struct stacks *stacks, *before; /* before: while they are renewed; else NULL */
	struct source_lines *lines;     /* NULL: nobody asks, or cuscope was built without */
	struct known_place *places;
	uint64_t loosely, python_lost, late, refused; /* refused: by stacks of before */
};

/* What a record is turned into, and by what. */
struct naming {
	struct stack_names *names;
	const struct process *process;
	const struct python_layout *python;
	const struct stack_frame *frames[STACK_ENTRIES_MAX];
	size_t n;
	bool cut;
};

static struct stacks *stacks_of(const struct stack_names_options *options)
{
	return stacks_new(options->renews ? STACKS_BYTES_MAX / 2 : STACKS_BYTES_MAX);
}

struct stack_names *stack_names_new(const struct stack_names_options *options)
{
	struct stack_names *names = xcalloc(1, sizeof(*names));

	names->options = *options;
	names->symbols = symbols_new();
	names->codes = python_codes_new();
	names->stacks = stacks_of(options);
	if (options->lines)
		names->lines = source_lines_new(NULL);
	return names;
}

static void forget_places(struct stack_names *names)
{
	MAP_FREE(names->places, free);
}

void stack_names_free(struct stack_names *names)
{
	if (!names)
		return;
	forget_places(names);
	symbols_free(names->symbols);
	kernel_symbols_free(names->kernel);
	python_codes_free(names->codes);
	source_lines_free(names->lines);
	stacks_free(names->stacks);
	free(names);
}

void stack_names_look(struct stack_names *names, pid_t pid)
{
	symbols_look(names->symbols, pid);
}

void stack_names_forget(struct stack_names *names, const struct process *process)
{
	symbols_forget(names->symbols, process);
	python_codes_forget(names->codes, process->id);
}

void stack_names_execed(struct stack_names *names, const struct process *process)
{
	symbols_execed(names->symbols, process);
	python_codes_forget(names->codes, process->id);
}

/* ---- native frames --------------------------------------------------------------------------- */

/* NVIDIA's own libraries: what stands between a program and the driver. */
static bool is_cuda_library(const char *module)
{
	static const char *const begins[] = {
		"libcuda.",    "libcudart",   "libcublas", "libcudnn", "libcufft",     "libcurand",
		"libcusolver", "libcusparse", "libnccl",   "libnvrtc", "libnvJitLink", "libcupti",
	};

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(module, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static enum frame_kind kind_of(const struct frame *found)
{
	if (!found->module)
		return FRAME_NATIVE;
	if (!strcmp(found->module, "[anon]") || !strncmp(found->module, "memfd:", 6))
		return FRAME_JIT;
	return is_cuda_library(found->module) ? FRAME_CUDA : FRAME_NATIVE;
}

static void want_lines(struct stack_names *names, const struct frame *found,
                       const struct stack_frame *frame)
{
	const struct source_lines_place place = { found->fd, found->offset, found->path,
		                                  found->build_id, found->function != NULL };

	source_lines_want(names->lines, &place, (void *)frame);
}

static const struct stack_frame *find_native(struct stack_names *names,
                                             const struct process *process, uint64_t address,
                                             bool call, bool *late)
{
	struct stack_frame frame = { 0 };
	const struct stack_frame *kept;
	struct frame found;

	if (call)
		symbols_find_call(names->symbols, process, address, &found);
	else
		symbols_find(names->symbols, process, address, &found);
	*late = found.late;
	names->late += found.late;
	frame.kind = kind_of(&found);
	frame.function = found.function;
	frame.module = found.module;
	frame.offset = found.offset;
	frame.build_id = found.build_id;
	kept = stacks_frame(names->stacks, &frame);
	if (kept && found.fd >= 0 && kept->kind != FRAME_JIT)
		want_lines(names, &found, kept);
	return kept;
}

static const struct stack_frame *
native_frame(struct stack_names *names, const struct process *process, uint64_t address, bool call)
{
	const struct place_key key = { address, process->id, call };
	const struct stack_frame *frame;
	bool late;
	struct known_place *place = MAP_FIND(names->places, &key);

	if (place)
		return place->frame;
	frame = find_native(names, process, address, call, &late);
	/* It may be mapped, or there be time for it, when it is asked for again. */
	if (!frame || !frame->module || late)
		return frame;
	if (HASH_COUNT(names->places) >= CACHE_MAX)
		forget_places(names);
	place = MAP_ADD(names->places, key, &key);
	place->frame = frame;
	return place->frame;
}

static bool is_evaluator(void *data, const struct wire_entry *native)
{
	struct naming *naming = data;
	const struct stack_frame *frame =
		native_frame(naming->names, naming->process, native->a, true);

	return frame && frame->function &&
	       !strncmp(frame->function, "_PyEval_EvalFrameDefault", 24);
}

/* ---- the others ------------------------------------------------------------------------------ */

static const struct stack_frame *kernel_frame(struct stack_names *names, uint64_t address)
{
	struct stack_frame frame = { .kind = FRAME_KERNEL_MODE, .module = "[kernel]" };
	struct kernel_function function;

	if (!names->kernel)
		names->kernel = kernel_symbols_of_this_kernel();
	if (kernel_symbols_find(names->kernel, address, &function)) {
		frame.function = function.name;
		if (function.module)
			frame.module = function.module;
		if (function.module && !strncmp(function.module, "nvidia", 6))
			frame.kind = FRAME_DRIVER;
	}
	return stacks_frame(names->stacks, &frame);
}

static const struct stack_frame *python_frame(struct naming *naming, const struct wire_entry *entry)
{
	struct stack_names *names = naming->names;
	struct stack_frame frame = { .kind = FRAME_PYTHON };
	struct python_place place;

	if (naming->python &&
	    python_codes_find(names->codes, naming->python, naming->process, entry, &place)) {
		frame.function = place.function;
		frame.file = place.file;
		frame.line = place.line;
		frame.first_line = place.first_line;
	} else {
		names->python_lost++;
		naming->cut = true;
	}
	return stacks_frame(names->stacks, &frame);
}

/* False where there is no room for the frame. */
static bool add(struct naming *naming, const struct wire_entry *entry)
{
	const struct stack_frame *frame = NULL;

	switch (entry_kind(entry)) {
	case ENTRY_NATIVE:
		frame = native_frame(naming->names, naming->process, entry->a,
		                     !(entry->b & ENTRY_EXACT));
		break;
	case ENTRY_PYTHON:
		frame = python_frame(naming, entry);
		break;
	case ENTRY_KERNEL:
		frame = kernel_frame(naming->names, entry->a);
		break;
	case ENTRY_ANCHOR:
		return true;
	}
	if (frame)
		naming->frames[naming->n++] = frame;
	return frame != NULL;
}

/* A blocked thread's innermost frames are how the kernel came to walk it. */
static size_t schedulers_frames(const struct naming *naming)
{
	static const char *const ends[] = { "__schedule", "schedule" };
	size_t skip = 0;

	for (size_t i = 0; i + 1 < naming->n; i++) {
		const struct stack_frame *frame = naming->frames[i];

		if (frame->kind != FRAME_KERNEL_MODE)
			break;
		for (size_t end = 0; frame->function && end < ARRAY_SIZE(ends); end++)
			if (!strcmp(frame->function, ends[end]))
				skip = i + 1;
	}
	return skip;
}

const struct stack *stack_names_find(struct stack_names *names, const struct process *process,
                                     const struct wire_stack_entries *record)
{
	struct wire_entry entries[STACK_ENTRIES_MAX];
	struct naming naming = { .names = names, .process = process, .cut = record->python_cut };
	struct stack stack = { .end = (enum stack_end)record->end };
	bool loosely;
	size_t n, skip;

	stacks_for(names->stacks, process->id, process->person);
	naming.python = unwinder_python(names->options.unwinder, (pid_t)process->pid);
	n = stack_splice(record->entry, record->n, record->sp, entries, is_evaluator, &naming,
	                 &loosely);
	names->loosely += loosely;
	for (size_t i = 0; i < n; i++)
		if (!add(&naming, &entries[i]))
			return NULL;
	if (!naming.n || stack.end >= STACK_END_COUNT)
		return NULL;
	stack.python_cut = naming.cut;
	skip = record->head.flags & STACK_OF_BLOCKED ? schedulers_frames(&naming) : 0;
	stack.n_frames = naming.n - skip;
	stack.frames = naming.frames + skip;
	return stacks_stack(names->stacks, &stack);
}

/* ---- what nobody holds ------------------------------------------------------------------------
 */

void stack_names_renew_begin(struct stack_names *names)
{
	names->before = names->stacks;
	names->stacks = stacks_of(&names->options);
}

const struct stack *stack_names_move(struct stack_names *names, uint32_t process, uint64_t person,
                                     const struct stack *stack)
{
	if (!stack)
		return NULL;
	stacks_for(names->stacks, process, person);
	return stacks_move(names->stacks, stack);
}

void stack_names_renew_end(struct stack_names *names)
{
	forget_places(names);
	symbols_renew(names->symbols);
	names->refused += stacks_refused(names->before);
	stacks_free(names->before);
	names->before = NULL;
	stacks_as_new(names->stacks);
}

bool stack_names_are_worn(const struct stack_names *names)
{
	return names->options.renews &&
	       (stacks_are_worn(names->stacks) || symbols_are_worn(names->symbols));
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A symbol says what a function is called where there is one: inlined functions have none. */
static void take_lines(void *data, void *what, const struct lines_part *parts, size_t n)
{
	const struct stack_frame *frame = what, *kept[LINES_PARTS_MAX];
	struct stack_names *names = data;

	if (n == 1 && !parts->line && (frame->function || !parts->function))
		return;
	for (size_t i = 0; i < n; i++) {
		struct stack_frame part = *frame;

		part.inlined = i + 1 < n;
		if (part.inlined || !frame->function)
			part.function = parts[i].function;
		part.file = parts[i].file;
		part.line = parts[i].line;
		part.first_line = parts[i].first_line;
		kept[i] = stacks_frame(names->stacks, &part);
		if (!kept[i])
			return;
	}
	stacks_set_parts(names->stacks, frame, kept, n);
}

void stack_names_take_lines(struct stack_names *names)
{
	stacks_for(names->stacks, LINES_OWNER, QUOTA_ROOT);
	source_lines_each(names->lines, take_lines, names);
}

void stack_names_finish(struct stack_names *names, uint64_t ns)
{
	source_lines_wait(names->lines, ns);
	stack_names_take_lines(names);
}

bool stack_names_news(struct stack_names *names, char *text, size_t size)
{
	return source_lines_news(names->lines, text, size);
}

#define ENGINE_LOOP "torch::autograd::Engine::thread_main"

/* How many frames are the engine's and inside of it; 0: it is none of its stacks. */
static size_t engine_frames(const struct stack *stack)
{
	for (size_t i = stack->n_frames; i > 0; i--) {
		const char *function = stack->frames[i - 1]->function;

		if (function && !strncmp(function, ENGINE_LOOP, sizeof(ENGINE_LOOP) - 1))
			return i;
	}
	return 0;
}

const struct stack *stack_names_join(struct stack_names *names, const struct stack *stack,
                                     const struct stack *asked)
{
	const struct stack_frame *frames[STACK_ENTRIES_MAX];
	struct stack joined = *stack;
	size_t n = engine_frames(stack), outer = asked->n_frames;

	/* a pass that a pass has asked for is run by the same threads */
	if (!n || engine_frames(asked))
		return stack;
	joined.end = asked->end;
	if (outer > STACK_ENTRIES_MAX - n) {
		outer = STACK_ENTRIES_MAX - n;
		joined.end = STACK_TOO_DEEP;
	}
	memcpy(frames, stack->frames, n * sizeof(*frames));
	memcpy(frames + n, asked->frames, outer * sizeof(*frames));
	joined.python_cut = stack->python_cut || asked->python_cut;
	joined.n_frames = n + outer;
	joined.frames = frames;
	return stacks_stack(names->stacks, &joined);
}

static bool is_inside_call(const struct stack_frame *frame, const char *agent)
{
	static const char *const begins[] = { "libcuda.", "libcudart", "libcupti" };

	if (!frame->module)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(frame->module, begins[i], strlen(begins[i])))
			return true;
	return agent && !strcmp(frame->module, agent);
}

const struct stack *stack_names_of_call(struct stack_names *names, const struct stack *stack)
{
	const char *agent = stack->n_frames ? stack->frames[0]->module : NULL;
	struct stack outer = *stack;
	size_t inside = 0;

	while (inside < stack->n_frames && is_inside_call(stack->frames[inside], agent))
		inside++;
	if (!inside)
		return stack;
	if (inside == stack->n_frames)
		return NULL;
	if (!agent || strcmp(stack->frames[inside - 1]->module, agent))
		inside--;
	outer.n_frames -= inside;
	outer.frames += inside;
	return stacks_stack(names->stacks, &outer);
}

void stack_names_figures(const struct stack_names *names, struct stack_names_figures *figures)
{
	figures->stacks = stacks_count(names->stacks);
	figures->refused = names->refused + stacks_refused(names->stacks) +
	                   python_codes_refused(names->codes) + symbols_refused(names->symbols);
	figures->loosely = names->loosely;
	source_lines_figures(names->lines, &figures->lines);
	figures->python_lost = names->python_lost;
	figures->late = names->late;
}
