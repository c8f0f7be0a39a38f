// SPDX-License-Identifier: MIT
/*
 * A trace file as `cuscope record --stacks` writes it, made by hand.
 *
 *   stacked FILE CALLS [STACKS]     STACKS 0: the same calls without stacks, and no samples
 *
 * Launches of one thread. Each has one of so many stacks of 30 frames, 20,000 unless said
 * otherwise, which begin alike and part on their way. There is a sample on a CPU for every tenth
 * call, and one of blocked time for every hundredth.
 */
#include "../../tests/unit/support.h"

#include <fcntl.h>
#include <unistd.h>

#include "trace/writer.h"

#define DEPTH     30
#define FUNCTIONS 2000
#define PLACES    3 /* in each function that calls are made from */
#define FILES     20

static struct stack_frame frames[FUNCTIONS * PLACES];
static struct stack *stacks;
static unsigned n_stacks;
static uint64_t seed = 88172645463325252ull;

static unsigned pick(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static void make_frames(void)
{
	static char names[FUNCTIONS][64], files[FILES][32], ids[FILES][41];

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(files[i], sizeof(files[i]), i % 4 ? "libpart_%u.so" : "/app/part_%u.py",
		         i);
		snprintf(ids[i], sizeof(ids[i]), "%040u", i);
	}
	for (unsigned i = 0; i < FUNCTIONS * PLACES; i++) {
		unsigned function = i / PLACES, file = function % FILES;
		bool python = file % 4 == 0;

		snprintf(names[function], sizeof(names[function]),
		         "library::part_%u::function_%u(int, float const*)", file, function);
		frames[i] = (struct stack_frame){ .id = i,
			                          .kind = python ? FRAME_PYTHON : FRAME_NATIVE,
			                          .function = names[function],
			                          .module = python ? NULL : files[file],
			                          .file = python ? files[file] : NULL,
			                          .line = python ? i + 1 : 0,
			                          .offset = python ? 0 : 16 * i,
			                          .build_id = python ? NULL : ids[file] };
	}
}

/* A stack goes along with one before it for some way. */
static void make_stacks(void)
{
	const struct stack_frame **list =
		calloc((size_t)n_stacks * DEPTH, sizeof(const struct stack_frame *));

	stacks = calloc(n_stacks, sizeof(*stacks));
	for (unsigned i = 0; i < n_stacks; i++) {
		const struct stack_frame **own = &list[(size_t)i * DEPTH];
		unsigned other = i ? pick(i) : 0, shared = i ? pick(DEPTH) : 0;

		for (unsigned k = 0; k < DEPTH; k++)
			own[k] = &frames[pick(FUNCTIONS * PLACES)];
		for (unsigned k = DEPTH - shared; k < DEPTH; k++)
			own[k] = list[(size_t)other * DEPTH + k];
		stacks[i] = (struct stack){ .id = i, .n_frames = DEPTH, .frames = own };
	}
}

static void put(struct consumer *writer, const struct event *event)
{
	struct err err = { 0 };

	if (!writer->ops->event(writer, event, &err))
		return;
	fprintf(stderr, "stacked: %s\n", err.text);
	exit(1);
}

static void put_sample(struct consumer *writer, const struct process *process, uint64_t time_ns,
                       enum sample_kind kind)
{
	struct sample sample = { .kind = kind,
		                 .weight_ns = kind == SAMPLE_CPU ? 1000000 : 250000,
		                 .stack = &stacks[pick(n_stacks)] };
	struct event event = { .type = EVENT_SAMPLE,
		               .time_ns = time_ns,
		               .process = process,
		               .tid = process->pid,
		               .sample = &sample };

	put(writer, &event);
}

static void put_calls(struct consumer *writer, const struct process *process, uint64_t n)
{
	const struct kernel *kernel = new_kernel("void step<float, 4>(float const*, int)", true);

	for (uint64_t i = 0; i < n; i++) {
		struct call call = launch_at("cudaLaunchKernel", 10.0 * (double)(i + 1), kernel);
		struct event event;

		call.correlation = i + 1;
		if (n_stacks)
			call.stack = &stacks[pick(n_stacks)];
		event = call_event(process, process->pid, &call);
		put(writer, &event);
		if (n_stacks && i % 10 == 0)
			put_sample(writer, process, event.time_ns, SAMPLE_CPU);
		if (n_stacks && i % 100 == 0)
			put_sample(writer, process, event.time_ns, SAMPLE_OFF_CPU);
	}
}

int main(int argc, char **argv)
{
	const struct process *process = new_process(4242, "python3");
	uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	struct run_info run = default_run_info();
	struct consumer *writer;
	struct err err = { 0 };
	struct event event;
	int fd;

	fd = argc > 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	if (fd < 0 || !calls)
		return 2;
	n_stacks = argc > 3 ? (unsigned)atoi(argv[3]) : 20000;
	make_frames();
	make_stacks();
	if (n_stacks)
		run.stacks =
			(struct run_stacks){ .sample_ns = 1000000, .calls = true, .one_in = 1 };
	writer = writer_new(fd, argv[1]);
	if (writer->ops->begin(writer, &run, &err))
		return 1;
	event = process_event(EVENT_PROCESS, process, 0);
	put(writer, &event);
	put_calls(writer, process, calls);
	run.end_ns = US(10.0 * (double)(calls + 2));
	if (writer->ops->end(writer, &run, &err))
		return 1;
	writer->ops->free(writer);
	return close(fd);
}
