// SPDX-License-Identifier: MIT
/*
 * Makes a trace of stacks that are hard to write down:
 *
 *   stacks FILE.cuscope [FILES]     with as many files of code, 5000 unless said otherwise
 *
 * names that break out of quotes, of lines and of UTF-8, and some of the longest; a stack of the
 * most frames, with inlined ones; a file of two build ids, and build ids that are none; more files
 * than a format remembers; frames that come to stand for 64 others each, with names that break out
 * too; blocked time that overlaps, began before the trace or is longer than
 * time is; samples of threads that nobody told of, and of a process that has ended.
 */
#include "../golden/stacks.h"

#include "trace/format.h"

#define FILES_MOST 5000

static const char *const ids[] = {
	NULL, "0123abcd", "0123abce", "xyz", "0123a", "", "\x1b[2J\xff\""
};

static struct stack_frame frames[FORMAT_FRAMES_MAX + FILES_MOST + 128];
static uint32_t n_frames, n_stacks;

static const struct stack_frame *frame(struct stack_frame like)
{
	like.id = n_frames;
	frames[n_frames] = like;
	return &frames[n_frames++];
}

static void put_kind(struct scene *s, double at_us, enum sample_kind kind, double us,
                     const struct stack *stack)
{
	const struct sample sample = { .kind = kind,
		                       .weight_ns = (uint64_t)(us * 1000),
		                       .stack = stack };

	put_one(s, at_us, &sample);
}

/* Of `n` frames that were made one after the other, the first one innermost. */
static const struct stack *stack_of_last(size_t n, enum stack_end end)
{
	const struct stack_frame **list = calloc(n, sizeof(const struct stack_frame *));
	struct stack *stack = calloc(1, sizeof(*stack));

	for (size_t i = 0; i < n; i++)
		list[i] = &frames[n_frames - n + i];
	*stack = (struct stack){ n_stacks++, end, end == STACK_BAD, n, list };
	return stack;
}

static const char *longest(char of)
{
	char *text = malloc(FORMAT_FRAME_TEXT_MAX + 1);

	memset(text, of, FORMAT_FRAME_TEXT_MAX);
	text[FORMAT_FRAME_TEXT_MAX] = '\0';
	return text;
}

static const struct stack *hostile(void)
{
	frame((struct stack_frame){ .function = "a\"\\\n\x1b[31m\xff\xed\xa0\x80</script>'--" });
	frame((struct stack_frame){ .kind = FRAME_PYTHON,
	                            .function = "\xe2\x80\xae;,\t",
	                            .file = "/a\"b'\n\xff.py",
	                            .line = UINT32_MAX,
	                            .first_line = UINT32_MAX });
	frame((struct stack_frame){ .function = longest('f'),
	                            .module = longest('m'),
	                            .file = longest('s'),
	                            .build_id = longest('a'),
	                            .offset = UINT64_MAX });
	frame((struct stack_frame){ .kind = FRAME_CUDA, .function = "", .module = "" });
	frame((struct stack_frame){ .kind = FRAME_JIT, .module = "[\xff]" });
	frame((struct stack_frame){ .kind = FRAME_GPU, .module = "a'b\"c;--" });
	return stack_of_last(6, STACK_BAD);
}

/* One file by name, of which a trace may have several. */
static const struct stack *build_ids(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		frame((struct stack_frame){ .function = "same",
		                            .module = "libsame.so",
		                            .offset = 0x40,
		                            .build_id = ids[i] });
	return stack_of_last(ARRAY_SIZE(ids), STACK_WHOLE);
}

static const struct stack *deepest(void)
{
	for (size_t i = 0; i < FORMAT_FRAMES_MAX; i++)
		frame((struct stack_frame){ .function = "recursive",
		                            .module = "librecursive.so",
		                            .inlined = i % 2 == 0,
		                            .offset = i / 2 });
	return stack_of_last(FORMAT_FRAMES_MAX, STACK_TOO_DEEP);
}

/* 24 frames of 64 parts: the 16 outermost become 1,024, the others stay whole. */
static const struct stack *parted(void)
{
	static const struct stack_frame *parts[FORMAT_PARTS_MAX];

	for (size_t i = 0; i < FORMAT_PARTS_MAX; i++)
		parts[i] = frame((struct stack_frame){ .function = "in\"\\\n\x1b[31m\xff",
		                                       .module = "libparted.so",
		                                       .inlined = i + 1 < FORMAT_PARTS_MAX,
		                                       .file = "/a\"b'\n\xff.h",
		                                       .line = (uint32_t)i + 1,
		                                       .offset = 0x50 });
	for (size_t i = 0; i < 24; i++) {
		frame((struct stack_frame){
			.function = "parted", .module = "libparted.so", .offset = 0x1000 + i });
		frames[n_frames - 1].parts = parts;
		frames[n_frames - 1].n_parts = FORMAT_PARTS_MAX;
	}
	return stack_of_last(24, STACK_WHOLE);
}

static const struct stack *of_a_file(unsigned number)
{
	char *name = malloc(32);

	snprintf(name, 32, "lib%u.so", number);
	frame((struct stack_frame){ .function = name, .module = name, .file = name, .line = 1 });
	return stack_of_last(1, STACK_WHOLE);
}

static void blocked(struct scene *s)
{
	const struct stack *stack = stack_of_last(1, STACK_NO_RULE);

	put_kind(s, 100, SAMPLE_OFF_CPU, 400, stack); /* since before the trace */
	put_kind(s, 200, SAMPLE_OFF_CPU, 150, stack); /* overlaps the one before it */
	put_kind(s, 200, SAMPLE_OFF_CPU, 0, stack);
	put_kind(s, 300, SAMPLE_OFF_CPU, 5e12, stack); /* longer than time is */
	put_kind(s, 310, SAMPLE_OFF_CPU, 5, NULL);
	put_kind(s, 320, SAMPLE_CPU, 0, stack);
	put_kind(s, 330, SAMPLE_CPU, 1e13, stack);
}

/* In all ways that there are, with a waker whose name breaks out. */
static void woken(struct scene *s, const struct stack *stack)
{
	for (enum blocked how = BLOCKED_UNKNOWN; how < BLOCKED_COUNT; how++) {
		struct sample sample = { .kind = SAMPLE_OFF_CPU,
			                 .weight_ns = 100,
			                 .blocked = how,
			                 .count = UINT64_MAX };

		if (how == BLOCKED_WOKEN) {
			sample.waker = "w\"\\\x1b[2J\n\xff";
			sample.waker_tid = UINT32_MAX;
		}
		if (sample_is_stretch(&sample))
			sample.stack = stack;
		put_one(s, 340 + how, &sample);
	}
}

static void calls(struct scene *s, const struct stack *stack)
{
	struct call call = call_at("cudaDeviceSynchronize", 400, 10);

	call.stack = stack;
	put_call(s, call);
	call = call_at("cudaStreamSynchronize", 420, 0);
	call.stack = stack;
	call.end_ns = 0;
	call.flags = CALL_UNFINISHED;
	put_call(s, call);
	call = call_at("cudaSetDevice", 430, 0);
	call.stack = stack;
	call.end_ns = 0;
	call.flags = CALL_NO_RETURN;
	put_call(s, call);
}

int main(int argc, char **argv)
{
	struct scene scene = { 0 };
	struct run_info run = default_run_info();
	const struct process *process = new_process(77, "a\"\\\x1b[2J");
	const struct stack *names;

	unsigned files = argc > 2 ? (unsigned)atoi(argv[2]) : FILES_MOST;

	if (argc < 2 || files > FILES_MOST)
		return 2;
	run.end_ns = US(3000);
	run.stacks = stacks_asked();
	put_process(&scene, 1, process);
	names = hostile();
	put_kind(&scene, 10, SAMPLE_CPU, 1000, names);
	put_kind(&scene, 11, SAMPLE_CPU, 1000, build_ids());
	put_kind(&scene, 12, SAMPLE_CPU, 1000, deepest());
	put_kind(&scene, 13, SAMPLE_CPU, 1000, parted());
	blocked(&scene);
	woken(&scene, names);
	calls(&scene, names);
	scene.tid = 79; /* that nobody told of */
	put_kind(&scene, 500, SAMPLE_CPU, 1000, names);
	put_kind(&scene, 510, SAMPLE_OFF_CPU, 10, names);
	for (unsigned i = 0; i < files; i++)
		put_kind(&scene, 600 + i / 10.0, SAMPLE_CPU, 1, of_a_file(i));
	put_other(&scene, EVENT_EXIT, 2000, NULL, 0);
	put_kind(&scene, 2100, SAMPLE_CPU, 1000, names);
	put_kind(&scene, 2200, SAMPLE_OFF_CPU, 10, names);
	write_scene(&scene, &run, argv[1]);
	return 0;
}
