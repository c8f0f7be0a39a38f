// SPDX-License-Identifier: MIT
/* Sums and single events of the driver's own queues of managed memory, of several processes. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/uvm_queues.h"
#include "probe/uvm_queue.h"

#define ENTRIES   65536
#define PROCESSES 2
#define MILLION   1000000ull
#define FIRST     100
#define BLOCK     (1ull << DRIVER_BLOCK)

struct scene {
	uint8_t *memory[PROCESSES];
	struct uvm_queues *queues;
	uint64_t now_ns;
	size_t n_singles, n_sums;
	struct wire_driver_event last;
	struct driver_key key[64];
	struct driver_sum sum[64];
	uint64_t count;
	int notices;
};

static void notice(void *data, const char *text)
{
	struct scene *scene = data;

	scene->notices++;
}

static int scene_new(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->queues = uvm_queues_new(0, notice, scene);
	scene->now_ns = 1000 * MILLION;
	for (int i = 0; i < PROCESSES; i++) {
		scene->memory[i] = calloc(1, UVM_CONTROL_BYTES + (size_t)ENTRIES * UVM_ENTRY);
		uvm_queues_take(scene->queues, uvm_queue_over(scene->memory[i], ENTRIES),
		                FIRST + i);
	}
	*state = scene;
	return 0;
}

static int scene_free(void **state)
{
	struct scene *scene = *state;

	uvm_queues_free(scene->queues);
	for (int i = 0; i < PROCESSES; i++)
		free(scene->memory[i]);
	free(scene);
	return 0;
}

static void set(uint8_t *entry, size_t at, uint64_t value)
{
	memcpy(entry + at, &value, sizeof(value));
}

static uint8_t *entry_of(struct scene *scene, int process, uint8_t type)
{
	struct uvm_control *control = (struct uvm_control *)scene->memory[process];
	uint8_t *entry = scene->memory[process] + UVM_CONTROL_BYTES +
	                 (size_t)control->put_behind * UVM_ENTRY;

	memset(entry, 0, UVM_ENTRY);
	entry[0] = type;
	control->put_ahead = control->put_behind = (control->put_behind + 1) % ENTRIES;
	return entry;
}

/* The driver's clock is not ours: what is asked about times is only what they are beside others. */
static void gpu_fault(struct scene *scene, int process, uint64_t address)
{
	uint8_t *entry = entry_of(scene, process, 3);

	entry[3] = 1;
	set(entry, 8, address);
	set(entry, 16, 1);
}

static void migration(struct scene *scene, int process, uint64_t address, uint64_t bytes)
{
	uint8_t *entry = entry_of(scene, process, 2);

	entry[1] = 3;
	entry[3] = 1;
	set(entry, 8, address);
	set(entry, 16, bytes);
	set(entry, 24, 1000);
	set(entry, 32, 1000 + 5 * MILLION);
}

static void single(void *data, const struct wire_driver_event *event)
{
	struct scene *scene = data;

	scene->n_singles++;
	scene->last = *event;
}

static void sum(void *data, const struct driver_key *key, const struct driver_sum *one)
{
	struct scene *scene = data;

	if (scene->n_sums < 64) {
		scene->key[scene->n_sums] = *key;
		scene->sum[scene->n_sums] = *one;
	}
	scene->n_sums++;
	scene->count += one->count;
}

static void turn(struct scene *scene)
{
	scene->n_singles = scene->n_sums = 0;
	scene->count = 0;
	uvm_queues_read(scene->queues, scene->now_ns, false, single, scene);
	uvm_queues_sums(scene->queues, sum, scene);
}

static void test_events_of_one_block_are_one_sum(void **state)
{
	struct scene *scene = *state;

	migration(scene, 0, BLOCK + 8192, 4096);
	migration(scene, 0, BLOCK + 65536, 65536);
	migration(scene, 0, BLOCK, 8192);
	turn(scene);
	assert_int_equal(scene->n_sums, 1);
	assert_int_equal(scene->key[0].tgid, FIRST);
	assert_int_equal(scene->key[0].kind, DRIVER_MIGRATION);
	assert_int_equal(scene->key[0].cause, 3);
	assert_int_equal(scene->key[0].src, 0);
	assert_int_equal(scene->key[0].dst, 1);
	assert_int_equal(scene->key[0].block, 1);
	assert_int_equal(scene->sum[0].count, 3);
	assert_int_equal(scene->sum[0].bytes, 4096 + 65536 + 8192);
	assert_int_equal(scene->sum[0].first, BLOCK);
	assert_int_equal(scene->sum[0].last, BLOCK + 65536);
	assert_int_equal(scene->sum[0].ns, 15 * MILLION);
	assert_int_equal(scene->sum[0].sizes[0], 1); /* 4 KiB */
	assert_int_equal(scene->sum[0].sizes[1], 1); /* 8 KiB */
	assert_int_equal(scene->sum[0].sizes[4], 1); /* 64 KiB */
	turn(scene);
	assert_int_equal(scene->n_sums, 0);
}

static void test_processes_blocks_and_kinds_have_sums_of_their_own(void **state)
{
	struct scene *scene = *state;

	gpu_fault(scene, 0, BLOCK);
	gpu_fault(scene, 1, BLOCK);
	gpu_fault(scene, 0, 2 * BLOCK);
	migration(scene, 0, BLOCK, 4096);
	turn(scene);
	assert_int_equal(scene->n_sums, 4);
	assert_int_equal(scene->count, 4);
}

static void test_single_events_are_a_sample_of_each_process(void **state)
{
	struct scene *scene = *state;

	for (int i = 0; i < 1000; i++)
		gpu_fault(scene, 0, BLOCK + (uint64_t)i);
	gpu_fault(scene, 1, BLOCK);
	turn(scene);
	assert_int_equal(scene->n_singles, 65);
	assert_int_equal(scene->count, 1001);
	scene->now_ns += 20 * MILLION; /* within the same time */
	for (int i = 0; i < 10; i++)
		gpu_fault(scene, 0, BLOCK);
	turn(scene);
	assert_int_equal(scene->n_singles, 0);
	scene->now_ns += 200 * MILLION;
	gpu_fault(scene, 0, BLOCK + 77);
	turn(scene);
	assert_int_equal(scene->n_singles, 1);
	assert_int_equal(scene->last.head.type, WIRE_DRIVER_EVENT);
	assert_int_equal(scene->last.head.hook, DRIVER_GPU_FAULT);
	assert_int_equal(scene->last.head.tgid, FIRST);
	assert_int_equal(scene->last.dst, 1);
	assert_int_equal(scene->last.address, BLOCK + 77);
}

static void test_what_comes_late_has_its_place_now_and_its_own_times(void **state)
{
	struct scene *scene = *state;

	turn(scene);
	scene->now_ns = UINT64_MAX / 2; /* what the driver tells is long ago */
	turn(scene);
	scene->now_ns += MILLION;
	migration(scene, 0, BLOCK, 4096);
	turn(scene);
	assert_int_equal(scene->n_singles, 1);
	assert_int_equal(scene->last.head.time_ns, scene->now_ns);
	assert_int_equal(scene->last.posted_ns - scene->last.begin_ns, 5 * MILLION);
	assert_true(scene->last.posted_ns < scene->now_ns);
}

static void test_what_comes_in_time_has_its_place_by_its_time(void **state)
{
	struct scene *scene = *state;

	scene->now_ns = 0;
	turn(scene);
	scene->now_ns = 1;
	migration(scene, 0, BLOCK, 4096);
	turn(scene);
	assert_int_equal(scene->last.head.time_ns, scene->last.posted_ns);
}

static void test_rows_are_bounded_and_places_are_left_out_first(void **state)
{
	struct scene *scene = *state;

	for (uint64_t i = 0; i < DRIVER_ROWS + 1000; i++)
		gpu_fault(scene, 0, (i + 1) * BLOCK);
	turn(scene);
	assert_int_equal(scene->n_sums, DRIVER_ROWS + 1);
	assert_int_equal(scene->count, DRIVER_ROWS + 1000);
	assert_int_equal(uvm_queues_rest(scene->queues), 0);
	for (uint64_t i = 0; i < DRIVER_ROWS; i++) /* all rows are free again */
		gpu_fault(scene, 1, (i + 1) * BLOCK);
	turn(scene);
	assert_int_equal(scene->n_sums, DRIVER_ROWS);
}

static void test_what_was_dropped_of_all_is_counted(void **state)
{
	struct scene *scene = *state;

	((struct uvm_control *)scene->memory[0])->dropped[3] = 7;
	((struct uvm_control *)scene->memory[1])->dropped[1] = 4;
	assert_int_equal(uvm_queues_dropped(scene->queues), 11);
}

static void test_what_is_no_space_is_no_reason_for_a_notice(void **state)
{
	struct scene *scene = *state;

	uvm_queues_add(scene->queues, getpid(), 0);
	uvm_queues_add(scene->queues, getpid(), 99999);
	uvm_queues_look(scene->queues, getpid());
	assert_int_equal(scene->notices, 0);
}

static void test_a_process_has_two_and_the_third_is_told_once(void **state)
{
	struct scene *scene = *state;
	void *memory = calloc(1, UVM_CONTROL_BYTES + 2 * UVM_ENTRY);

	uvm_queues_take(scene->queues, uvm_queue_over(memory, 2), FIRST);
	uvm_queues_add(scene->queues, FIRST, 0);
	uvm_queues_add(scene->queues, FIRST, 0);
	assert_int_equal(scene->notices, 1);
	uvm_queues_free(scene->queues);
	scene->queues = NULL;
	free(memory);
}

static void test_queues_are_as_many_as_memory_allows(void **state)
{
	static const struct {
		size_t ring_bytes, most;
	} sizes[] = {
		{ 0, 32 }, { 64 << 10, 32 }, { 32 << 20, 32 }, { 64 << 20, 16 }, { 1ull << 33, 16 }
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct scene scene = { 0 };
		void *memory = calloc(1, UVM_CONTROL_BYTES + 2 * UVM_ENTRY);

		scene.queues = uvm_queues_new(sizes[i].ring_bytes, notice, &scene);
		for (size_t n = 0; n < sizes[i].most - 1; n++)
			uvm_queues_take(scene.queues, uvm_queue_over(memory, 2),
			                (pid_t)(1000000000 + n));
		uvm_queues_add(scene.queues, getpid(), 0);
		assert_int_equal(scene.notices, getuid() ? 1 : 0);
		uvm_queues_take(scene.queues, uvm_queue_over(memory, 2), 1000000999);
		uvm_queues_add(scene.queues, getpid(), 0);
		assert_int_equal(scene.notices, 1);
		uvm_queues_free(scene.queues);
		free(memory);
	}
}

static void ask(struct scene *scene, pid_t pid, int times)
{
	for (int i = 0; i < times; i++)
		uvm_queues_add(scene->queues, pid, 99999);
}

static void test_who_asks_without_an_end_is_looked_at_a_few_times(void **state)
{
	struct scene *scene = *state;

	turn(scene);
	ask(scene, getpid(), 16);
	assert_int_equal(scene->notices, 0);
	scene->now_ns += 200 * MILLION;
	turn(scene);
	ask(scene, getpid(), 16);     /* another time has room of its own, */
	ask(scene, getpid() + 1, 16); /* and so has another process */
	assert_int_equal(scene->notices, 0);
	ask(scene, getpid(), 1000);
	assert_int_equal(scene->notices, 1);
}

/* The end of a pipe stands for the address space: as long as anybody has it there is no end to
 * read. */
static void test_what_its_process_has_closed_is_let_go(void **state)
{
	struct scene *scene = *state;
	struct uvm_queue *queue = uvm_queue_over(scene->memory[0], ENTRIES);
	struct pollfd end = { .events = POLLIN };
	int ends[2];

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	end.fd = ends[0];
	assert_int_equal(uvm_queue_hold(queue, getpid(), ends[1], dup(ends[1])), 0);
	uvm_queues_take(scene->queues, queue, getpid());
	turn(scene);
	close(ends[1]);
	assert_int_equal(poll(&end, 1, 0), 0);
	gpu_fault(scene, 0, BLOCK); /* what it has told until then is not lost */
	turn(scene);
	assert_int_equal(poll(&end, 1, 0), 1);
	assert_int_equal(end.revents, POLLHUP);
	assert_true(scene->count >= 1);
	assert_int_equal(scene->notices, 0);
	close(ends[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_new, scene_free)
	const struct CMUnitTest tests[] = {
		TEST(test_events_of_one_block_are_one_sum),
		TEST(test_processes_blocks_and_kinds_have_sums_of_their_own),
		TEST(test_single_events_are_a_sample_of_each_process),
		TEST(test_what_comes_late_has_its_place_now_and_its_own_times),
		TEST(test_what_comes_in_time_has_its_place_by_its_time),
		TEST(test_rows_are_bounded_and_places_are_left_out_first),
		TEST(test_what_was_dropped_of_all_is_counted),
		TEST(test_what_is_no_space_is_no_reason_for_a_notice),
		TEST(test_who_asks_without_an_end_is_looked_at_a_few_times),
		TEST(test_what_its_process_has_closed_is_let_go),
		TEST(test_a_process_has_two_and_the_third_is_told_once),
		cmocka_unit_test(test_queues_are_as_many_as_memory_allows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
