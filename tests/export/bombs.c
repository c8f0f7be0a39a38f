// SPDX-License-Identifier: MIT
/*
 * Makes a small trace that stands for a great deal:
 *
 *   bombs
 * launches|samples|stacks|ranges|dense|processes|devices|within|numbers|early|orphans|trees|
 *         definitions|domains|kernels|functions|misses|texts|exits|long_ranges FILE.cuscope
 *
 * launches: one kernel with the longest of names, and half a million launches of it and runs on a
 * GPU. samples: 300,000 that all have the same stack, of the most frames. stacks: 2,000 of them of
 * 500 frames each, that differ, of functions with the longest of names. ranges: 3,000 with the
 * longest of names. dense: 30 million samples of one stack. processes: 40,000 with a launch of the
 * same kernel each. devices: 100,000 GPUs that have run one. within: 40,000 ranges within each
 * other, and a launch at the end of each. numbers: 200,000 launches whose numbers are alike in
 * their lower half, and then their work; early: the work first. orphans: 500,000 pieces of work of
 * one call, which is not there. trees: 100,000 stacks of two frames that a table by a known
 * function would have side by side. definitions: 1.2 billion begins of one thread.
 * domains: 300,000 ranges, each of a domain of its own, with a launch. kernels: 300,000 of them,
 * launched once each. functions: 120,000, called twice each. misses: as many functions, and as many
 * that were counted as are read of one file. texts: 100,000 launches, by turns of 10,000 kernels
 * with long names. exits: 50,000 threads, and a process that ends 120,000 times. long_ranges: three
 * million of a long name. Times go up by the same step, so that next to nothing of it takes room.
 */
#include "../golden/scene.h"

#include <zlib.h>
#include <zstd.h>

#include "trace/chunk.h"
#include "trace/format.h"
#include "trace/run_record.h"
#include "trace/writer.h"

#define STEP_NS 1000

/*
 * Whoever makes such a file does without what packer_add() puts behind a payload that packs to next
 * to nothing.
 */
void __real_packer_add(struct packer *packer, struct chunk_head *head, const void *raw,
                       size_t bytes, struct buf *out);
void __wrap_packer_add(struct packer *packer, struct chunk_head *head, const void *raw,
                       size_t bytes, struct buf *out);

void __wrap_packer_add(struct packer *packer, struct chunk_head *head, const void *raw,
                       size_t bytes, struct buf *out)
{
	size_t begin = out->len, stored;
	uint8_t *at;

	__real_packer_add(packer, head, raw, bytes, out);
	at = (uint8_t *)out->data + begin;
	stored = ZSTD_findFrameCompressedSize(at + FORMAT_CHUNK_BYTES, head->stored_bytes);
	head->stored_bytes = (uint32_t)stored;
	head->payload_crc = (uint32_t)crc32(0, at + FORMAT_CHUNK_BYTES, (uInt)stored);
	put_fixed(at + 8, head->stored_bytes, 4);
	put_fixed(at + 52, head->payload_crc, 4);
	put_fixed(at + FORMAT_CHUNK_BYTES - 4, crc32(0, at, FORMAT_CHUNK_BYTES - 4), 4);
	out->len = begin + FORMAT_CHUNK_BYTES + stored;
	out->data[out->len] = '\0';
}

struct bomb {
	struct consumer *writer;
	uint64_t now_ns;
	const struct process *process;
	struct run_info run;
};

static void give(struct bomb *bomb, struct event event)
{
	struct err err;

	event.time_ns = bomb->now_ns;
	event.process = bomb->process;
	event.tid = bomb->process->pid;
	assert_int_equal(bomb->writer->ops->event(bomb->writer, &event, &err), 0);
}

static char *long_text(size_t len)
{
	char *text = malloc(len + 1);

	memset(text, 'x', len);
	text[len] = '\0';
	return text;
}

/* A launch of this kernel, and its work. */
static void launch_and_run(struct bomb *bomb, const struct kernel *kernel, uint64_t correlation)
{
	struct call call = call_at("cuLaunchKernel", 0, 0);
	struct activity activity = { .kind = ACTIVITY_KERNEL, .kernel = kernel, .stream = 7 };

	bomb->now_ns += STEP_NS;
	call.kernel = kernel;
	call.begin_ns = bomb->now_ns - 10;
	call.end_ns = bomb->now_ns;
	call.correlation = activity.correlation = correlation;
	give(bomb, (struct event){ .type = EVENT_CALL, .call = &call });
	activity.begin_ns = bomb->now_ns - 5;
	activity.end_ns = bomb->now_ns;
	give(bomb, (struct event){ .type = EVENT_ACTIVITY, .activity = &activity });
}

static void launches(struct bomb *bomb)
{
	const struct kernel kernel = { .id = 0,
		                       .name = long_text(FORMAT_TEXT_MAX),
		                       .mangled = long_text(FORMAT_TEXT_MAX),
		                       .resolved = true };

	for (uint64_t i = 1; i <= 500000; i++)
		launch_and_run(bomb, &kernel, i);
}

static void kernels(struct bomb *bomb)
{
	char name[16];
	struct kernel kernel = { .name = name, .mangled = name, .resolved = true };

	for (uint32_t i = 0; i < 300000; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		kernel.id = i;
		launch_and_run(bomb, &kernel, i + 1);
	}
}

static void functions(struct bomb *bomb)
{
	char name[16];
	struct function function = { .name = name, .lib = "libcuda.so.1", .layer = LAYER_DRIVER };
	struct call call = { .function = &function };

	for (uint32_t i = 0; i < 2 * 120000; i++) {
		function.id = i / 2;
		snprintf(name, sizeof(name), "f%u", function.id);
		bomb->now_ns += STEP_NS;
		call.begin_ns = bomb->now_ns - 10 - 100 * (i % 2);
		call.end_ns = bomb->now_ns;
		give(bomb, (struct event){ .type = EVENT_CALL, .call = &call });
	}
}

static void misses(struct bomb *bomb)
{
	static struct miss all[RUN_MISSES_MAX];

	for (int i = 0; i < RUN_MISSES_MAX; i++) {
		char *name = malloc(16);

		snprintf(name, 16, "f%d", i + 60000);
		all[i] = (struct miss){
			.kind = MISS_COUNTED, .name = name, .lib = "libcuda.so.1", .calls = 1
		};
	}
	bomb->run.misses = all;
	bomb->run.n_misses = RUN_MISSES_MAX;
	functions(bomb);
}

static void sample(struct bomb *bomb, const struct stack *stack)
{
	const struct sample sample = { .kind = SAMPLE_CPU, .weight_ns = STEP_NS, .stack = stack };

	bomb->now_ns += STEP_NS;
	give(bomb, (struct event){ .type = EVENT_SAMPLE, .sample = &sample });
}

static void samples_of_number(struct bomb *bomb, unsigned n)
{
	static struct stack_frame frames[FORMAT_FRAMES_MAX];
	const struct stack_frame *list[FORMAT_FRAMES_MAX];
	const struct stack stack = { .n_frames = FORMAT_FRAMES_MAX, .frames = list };

	for (uint32_t i = 0; i < FORMAT_FRAMES_MAX; i++) {
		frames[i] = (struct stack_frame){
			.id = i, .function = "f", .module = "m.so", .offset = i
		};
		list[i] = &frames[i];
	}
	while (n--)
		sample(bomb, &stack);
}

static void samples(struct bomb *bomb)
{
	samples_of_number(bomb, 300000);
}

static void dense(struct bomb *bomb)
{
	samples_of_number(bomb, 30000000);
}

#define STACKS       2000
#define STACK_FRAMES 500

/* All are through the same functions, in turn begun at another one. */
static void stacks(struct bomb *bomb)
{
	static struct stack_frame frames[STACK_FRAMES];
	static const struct stack_frame *lists[STACKS][STACK_FRAMES];
	static struct stack all[STACKS];

	for (uint32_t i = 0; i < STACK_FRAMES; i++) {
		char *text = long_text(FORMAT_FRAME_TEXT_MAX);

		snprintf(text, 8, "%06u", i);
		text[6] = 'x';
		frames[i] = (struct stack_frame){ .id = i,
			                          .function = text,
			                          .module = text,
			                          .file = text,
			                          .line = i + 1,
			                          .offset = i };
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t j = 0; j < STACK_FRAMES; j++)
			lists[i][j] = &frames[(i + j * (1 + i / STACK_FRAMES)) % STACK_FRAMES];
		all[i] = (struct stack){ .id = i, .n_frames = STACK_FRAMES, .frames = lists[i] };
		sample(bomb, &all[i]);
	}
}

static void ranges(struct bomb *bomb)
{
	struct range range = { .kind = RANGE_PUSHPOP,
		               .name = long_text(FORMAT_TEXT_MAX),
		               .domain = long_text(FORMAT_TEXT_MAX) };

	for (int i = 0; i < 3000; i++) {
		bomb->now_ns += STEP_NS;
		range.begin_ns = bomb->now_ns - 10;
		range.end_ns = bomb->now_ns;
		give(bomb, (struct event){ .type = EVENT_RANGE, .range = &range });
	}
}

static void long_ranges(struct bomb *bomb)
{
	struct range range = { .kind = RANGE_PUSHPOP,
		               .name = long_text(8000),
		               .domain = long_text(8000) };

	for (int i = 0; i < 3000000; i++) {
		bomb->now_ns += STEP_NS;
		range.begin_ns = bomb->now_ns - 10;
		range.end_ns = bomb->now_ns;
		give(bomb, (struct event){ .type = EVENT_RANGE, .range = &range });
	}
}

static void exits(struct bomb *bomb)
{
	const struct process *crowd = bomb->process;
	struct thread thread = { .comm = "t" };
	struct call call = call_at("cudaMalloc", 0, 0);
	struct err err;

	for (uint32_t i = 1; i <= 50000; i++) {
		struct event event = { .type = EVENT_THREAD,
			               .time_ns = ++bomb->now_ns,
			               .process = crowd,
			               .tid = 1000 + i,
			               .thread = &thread };

		assert_int_equal(bomb->writer->ops->event(bomb->writer, &event, &err), 0);
		call.begin_ns = call.end_ns = bomb->now_ns;
		event.type = EVENT_CALL;
		event.call = &call;
		event.thread = NULL;
		assert_int_equal(bomb->writer->ops->event(bomb->writer, &event, &err), 0);
	}
	bomb->process = new_process(78, "ends");
	give(bomb, (struct event){ .type = EVENT_PROCESS });
	for (int i = 0; i < 120000; i++) {
		bomb->now_ns += STEP_NS;
		give(bomb, (struct event){ .type = EVENT_EXIT });
	}
}

static void launch_call(struct bomb *bomb, uint64_t correlation)
{
	static const struct kernel kernel = { .name = "k", .mangled = "k", .resolved = true };
	struct call call = call_at("cuLaunchKernel", 0, 0);

	bomb->now_ns += STEP_NS;
	call.kernel = &kernel;
	call.begin_ns = bomb->now_ns - 10;
	call.end_ns = bomb->now_ns - 8;
	call.correlation = correlation;
	give(bomb, (struct event){ .type = EVENT_CALL, .call = &call });
}

static void launch_work(struct bomb *bomb, uint64_t correlation)
{
	static const struct kernel kernel = { .name = "k", .mangled = "k", .resolved = true };
	struct activity activity = { .kind = ACTIVITY_KERNEL, .kernel = &kernel, .stream = 7 };

	activity.correlation = correlation;
	activity.begin_ns = bomb->now_ns - 5;
	activity.end_ns = bomb->now_ns;
	give(bomb, (struct event){ .type = EVENT_ACTIVITY, .activity = &activity });
}

static void launch(struct bomb *bomb, uint64_t correlation)
{
	launch_call(bomb, correlation);
	launch_work(bomb, correlation);
}

#define ALIKE 200000

static void numbers(struct bomb *bomb)
{
	for (uint64_t i = 1; i <= ALIKE; i++)
		launch_call(bomb, i << 32);
	for (uint64_t i = 1; i <= ALIKE; i++) {
		bomb->now_ns += STEP_NS;
		launch_work(bomb, i << 32);
	}
}

static void early(struct bomb *bomb)
{
	for (uint64_t i = 1; i <= ALIKE; i++) {
		bomb->now_ns += STEP_NS;
		launch_work(bomb, i << 32);
	}
	for (uint64_t i = 1; i <= ALIKE; i++)
		launch_call(bomb, i << 32);
}

static void orphans(struct bomb *bomb)
{
	for (int i = 0; i < 500000; i++) {
		bomb->now_ns += STEP_NS;
		launch_work(bomb, 1);
	}
}

#define ROOTS 10000 /* each frame is one */
#define TREES 100000

/* Where a table of 2^18 places would have a node. */
static uint32_t tree_place(uint64_t parent, uint32_t frame)
{
	return (uint32_t)((parent << 32 | frame) * 0x9e3779b97f4a7c15ull >> 32) & ((1u << 18) - 1);
}

static void trees(struct bomb *bomb)
{
	static struct stack_frame frames[ROOTS];
	static struct stack stacks[ROOTS + TREES];
	static const struct stack_frame *pairs[ROOTS + TREES][2];
	uint32_t n = 0;

	for (; n < ROOTS; n++) {
		frames[n] = (struct stack_frame){ .id = n, .function = "f" };
		pairs[n][0] = &frames[n];
		stacks[n] = (struct stack){ .id = n, .frames = pairs[n], .n_frames = 1 };
		sample(bomb, &stacks[n]);
	}
	for (uint32_t root = 0; root < ROOTS; root++) {
		for (uint32_t i = 0; i < ROOTS && n < ROOTS + TREES; i++) {
			if (tree_place(root + 1, i) > 3000)
				continue;
			pairs[n][0] = &frames[i];
			pairs[n][1] = &frames[root];
			stacks[n] = (struct stack){ .id = n, .frames = pairs[n], .n_frames = 2 };
			sample(bomb, &stacks[n++]);
		}
	}
}

static void processes(struct bomb *bomb)
{
	for (uint32_t i = 1; i <= 40000; i++) {
		struct process *process = calloc(1, sizeof(*process));

		*process = (struct process){ .id = i, .pid = 1000 + i, .comm = "p" };
		bomb->process = process;
		give(bomb, (struct event){ .type = EVENT_PROCESS });
		launch(bomb, 1);
	}
}

static void devices(struct bomb *bomb)
{
	struct activity activity = { .kind = ACTIVITY_SET, .stream = 7 };

	for (uint32_t i = 1; i <= 100000; i++) {
		bomb->now_ns += STEP_NS;
		activity.device = i;
		activity.begin_ns = bomb->now_ns - 5;
		activity.end_ns = bomb->now_ns;
		give(bomb, (struct event){ .type = EVENT_ACTIVITY, .activity = &activity });
	}
}

static void within(struct bomb *bomb)
{
	const uint32_t n = 40000;
	const uint64_t begin_ns = bomb->now_ns;
	struct range range = { .kind = RANGE_PUSHPOP, .name = "r" };

	bomb->now_ns += n;
	for (uint32_t i = 1; i <= n; i++) {
		launch(bomb, i);
		range.begin_ns = begin_ns + n - i;
		range.end_ns = bomb->now_ns;
		range.depth = n - i;
		give(bomb, (struct event){ .type = EVENT_RANGE, .range = &range });
	}
}

static void domains(struct bomb *bomb)
{
	char domain[16];
	struct range range = { .kind = RANGE_PUSHPOP, .name = "r", .domain = domain };

	for (uint32_t i = 1; i <= 300000; i++) {
		snprintf(domain, sizeof(domain), "d%u", i);
		launch(bomb, i);
		range.begin_ns = bomb->now_ns - 10;
		range.end_ns = bomb->now_ns;
		give(bomb, (struct event){ .type = EVENT_RANGE, .range = &range });
	}
}

#define DEFINITION_CHUNKS 1000

/* Of the process that is defined already, with no name: tag, length, body, seven bytes at most. */
static void begins_of_a_thread(struct buf *raw)
{
	const uint8_t record[] = { DEFINE_EVENT_THREAD, 5, 0, 77, 0, 0, 40 };

	while (raw->len + sizeof(record) <= FORMAT_RAW_MAX)
		buf_add(raw, (const char *)record, sizeof(record));
}

/* After the end of a file that has none of it: what follows its last chunk. */
static void definitions(int fd)
{
	struct packer *packer = packer_new();
	struct buf raw = { 0 }, chunk = { 0 };
	struct chunk_head head = { .type = CHUNK_DEFINITIONS };
	uint8_t trailer[FORMAT_TRAILER_BYTES];
	off_t end = lseek(fd, -FORMAT_TRAILER_BYTES, SEEK_END);

	assert_int_equal(pread(fd, trailer, sizeof(trailer), end), sizeof(trailer));
	assert_int_equal(ftruncate(fd, (off_t)get_fixed(trailer, 8)), 0);
	begins_of_a_thread(&raw);
	head.definitions = (uint32_t)(raw.len / 7);
	packer_add(packer, &head, raw.data, raw.len, &chunk);
	lseek(fd, 0, SEEK_END);
	for (int i = 0; i < DEFINITION_CHUNKS; i++)
		assert_int_equal(write(fd, chunk.data, chunk.len), chunk.len);
	buf_free(&raw);
	buf_free(&chunk);
	packer_free(packer);
}

static void texts(struct bomb *bomb)
{
	char *name = long_text(1000);
	struct kernel kernels[10000];

	memset(kernels, 0, sizeof(kernels));
	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(name, 8, "%07u", i);
		name[7] = 'x';
		kernels[i] = (struct kernel){
			.id = i, .name = strdup(name), .mangled = "m", .resolved = true
		};
	}
	for (uint32_t i = 0; i < 100000; i++)
		launch_and_run(bomb, &kernels[i % 10000], i + 1);
}

static const struct {
	const char *name;
	void (*put)(struct bomb *bomb);
} kinds[] = {
	{ "launches", launches },
	{ "samples", samples },
	{ "stacks", stacks },
	{ "ranges", ranges },
	{ "dense", dense },
	{ "processes", processes },
	{ "within", within },
	{ "devices", devices },
	{ "numbers", numbers },
	{ "early", early },
	{ "orphans", orphans },
	{ "trees", trees },
	{ "domains", domains },
	{ "kernels", kernels },
	{ "functions", functions },
	{ "misses", misses },
	{ "texts", texts },
	{ "exits", exits },
	{ "long_ranges", long_ranges },
};

static void make(struct bomb *bomb, const char *kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, kind))
			kinds[i].put(bomb);
	}
}

int main(int argc, char **argv)
{
	struct bomb bomb = { .process = new_process(77, "bomb"), .run = default_run_info() };
	struct err err;
	int fd;

	if (argc < 3)
		return 2;
	fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	bomb.writer = writer_new(fd, argv[2]);
	bomb.now_ns = bomb.run.begin_ns;
	bomb.run.gpu_times = true;
	bomb.run.stacks.sample_ns = STEP_NS;
	assert_int_equal(bomb.writer->ops->begin(bomb.writer, &bomb.run, &err), 0);
	give(&bomb, (struct event){ .type = EVENT_PROCESS });
	make(&bomb, argv[1]);
	bomb.run.end_ns = bomb.now_ns + STEP_NS;
	assert_int_equal(bomb.writer->ops->end(bomb.writer, &bomb.run, &err), 0);
	bomb.writer->ops->free(bomb.writer);
	if (!strcmp(argv[1], "definitions"))
		definitions(fd);
	close(fd);
	return 0;
}
