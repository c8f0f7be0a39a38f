// SPDX-License-Identifier: MIT
/* The driver's own queue of managed memory: what its events mean, and what is taken for one. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/wire_driver.h"
#include "probe/uvm_queue.h"

#define ENTRIES 8
#define OFFSET  1000

struct scene {
	union {
		struct uvm_control control;
		uint8_t bytes[UVM_CONTROL_BYTES + ENTRIES * UVM_ENTRY];
	};
	struct uvm_queue *queue;
	struct uvm_event seen[ENTRIES];
	size_t n;
};

static int scene_new(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->queue = uvm_queue_over(scene->bytes, ENTRIES);
	*state = scene;
	return 0;
}

static int scene_free(void **state)
{
	struct scene *scene = *state;

	uvm_queue_free(scene->queue);
	free(scene);
	return 0;
}

static void set(uint8_t *entry, size_t at, uint64_t value)
{
	memcpy(entry + at, &value, sizeof(value));
}

static void decode(const uint8_t *entry, struct uvm_event *event)
{
	assert_true(uvm_event_decode(entry, OFFSET, event));
}

static void test_faults_of_the_host(void **state)
{
	uint8_t entry[UVM_ENTRY] = { 1, 2 };
	uint32_t thread = 77;
	struct uvm_event event;

	set(entry, 8, 0x7000);
	set(entry, 16, 500);
	memcpy(entry + 28, &thread, sizeof(thread));
	decode(entry, &event);
	assert_int_equal(event.kind, DRIVER_CPU_FAULT);
	assert_int_equal(event.cause, 1);
	assert_int_equal(event.src, DRIVER_NOT_KNOWN);
	assert_int_equal(event.dst, 0);
	assert_int_equal(event.tid, 77);
	assert_int_equal(event.address, 0x7000);
	assert_int_equal(event.begin_ns, 1500);
	assert_int_equal(event.end_ns, 1500);
	entry[1] = 1; /* it reads */
	decode(entry, &event);
	assert_int_equal(event.cause, 0);
	entry[1] = 3; /* atomically */
	decode(entry, &event);
	assert_int_equal(event.cause, 1);
}

static void test_faults_of_gpus_fatal_ones_and_throttling(void **state)
{
	static const struct {
		uint8_t type, processor_at, kind;
	} kinds[] = { { 3, 3, DRIVER_GPU_FAULT },
		      { 6, 3, DRIVER_FATAL_FAULT },
		      { 11, 1, DRIVER_THROTTLING } };

	for (size_t i = 0; i < 3; i++) {
		uint8_t entry[UVM_ENTRY] = { kinds[i].type };
		struct uvm_event event;

		entry[kinds[i].processor_at] = 2;
		set(entry, 8, 0x8000);
		set(entry, 16, 700);
		decode(entry, &event);
		assert_int_equal(event.kind, kinds[i].kind);
		assert_int_equal(event.dst, 2);
		assert_int_equal(event.cause, DRIVER_NOT_KNOWN);
		assert_int_equal(event.tid, 0);
		assert_int_equal(event.address, 0x8000);
		assert_int_equal(event.end_ns, 1700);
	}
}

static void test_thrashing_has_a_size(void **state)
{
	uint8_t entry[UVM_ENTRY] = { 10 };
	struct uvm_event event;

	set(entry, 8, 3); /* processors */
	set(entry, 16, 0x9000);
	set(entry, 24, 4096);
	set(entry, 32, 10);
	decode(entry, &event);
	assert_int_equal(event.kind, DRIVER_THRASHING);
	assert_int_equal(event.address, 0x9000);
	assert_int_equal(event.bytes, 4096);
	assert_int_equal(event.begin_ns, 1010);
}

static void migration(uint8_t *entry, uint64_t begin_gpu, uint64_t end_gpu)
{
	entry[0] = 2;
	entry[2] = 0;
	entry[3] = 1;
	set(entry, 8, 0x200000);
	set(entry, 16, 65536);
	set(entry, 24, 2000);
	set(entry, 32, 9000);
	set(entry, 48, begin_gpu);
	set(entry, 56, end_gpu);
}

static void test_a_migration_takes_what_the_gpu_says(void **state)
{
	uint8_t entry[UVM_ENTRY] = { 0 };
	struct uvm_event event;

	migration(entry, 50000, 50300);
	decode(entry, &event);
	assert_int_equal(event.kind, DRIVER_MIGRATION);
	assert_int_equal(event.src, 0);
	assert_int_equal(event.dst, 1);
	assert_int_equal(event.bytes, 65536);
	assert_int_equal(event.address, 0x200000);
	assert_int_equal(event.begin_ns, 3000);
	assert_int_equal(event.end_ns, 3300);
}

static void test_a_migration_without_times_of_the_gpu_ends_when_the_driver_knew(void **state)
{
	static const uint64_t times[][2] = {
		{ 0, 0 }, { 0, 300 }, { 500, 400 }, { 500, 500 }, { 500, 7500 }
	};

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		uint8_t entry[UVM_ENTRY] = { 0 };
		struct uvm_event event;

		migration(entry, times[i][0], times[i][1]);
		decode(entry, &event);
		assert_int_equal(event.begin_ns, 3000);
		assert_int_equal(event.end_ns, 10000);
	}
}

static void test_causes_of_migrations(void **state)
{
	static const uint8_t causes[] = { DRIVER_NOT_KNOWN, 6, 0, 3, 4, 2, DRIVER_NOT_KNOWN,
		                          DRIVER_NOT_KNOWN };

	for (size_t i = 0; i < sizeof(causes); i++) {
		uint8_t entry[UVM_ENTRY] = { 2, (uint8_t)i };
		struct uvm_event event;

		decode(entry, &event);
		assert_int_equal(event.cause, causes[i]);
	}
}

static void test_other_events_are_passed_over(void **state)
{
	for (int type = 0; type < 256; type++) {
		uint8_t entry[UVM_ENTRY] = { (uint8_t)type };
		struct uvm_event event;
		bool told = type == 1 || type == 2 || type == 3 || type == 6 || type == 10 ||
		            type == 11;

		assert_int_equal(uvm_event_decode(entry, 0, &event), told);
	}
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void put(struct scene *scene, uint64_t address)
{
	uint32_t at = scene->control.put_behind;
	uint8_t *entry = scene->bytes + UVM_CONTROL_BYTES + at * UVM_ENTRY;

	memset(entry, 0, UVM_ENTRY);
	entry[0] = 3;
	set(entry, 8, address);
	scene->control.put_ahead = scene->control.put_behind = (at + 1) % ENTRIES;
}

static void see(void *data, const struct uvm_event *event)
{
	struct scene *scene = data;

	assert_true(scene->n < ENTRIES);
	scene->seen[scene->n++] = *event;
}

static void read_all(struct scene *scene)
{
	scene->n = 0;
	uvm_queue_read(scene->queue, see, scene);
}

static void test_each_event_is_read_once_also_around_the_end(void **state)
{
	struct scene *scene = *state;
	uint64_t next = 1;

	for (int round = 0; round < 10; round++) {
		uint64_t first = next;

		for (int i = 0; i < ENTRIES - 1; i++)
			put(scene, next++);
		read_all(scene);
		assert_int_equal(scene->n, ENTRIES - 1);
		for (size_t i = 0; i < scene->n; i++)
			assert_int_equal(scene->seen[i].address, first + i);
		assert_int_equal(scene->control.get_ahead, scene->control.put_behind);
		assert_int_equal(scene->control.get_behind, scene->control.put_behind);
		read_all(scene);
		assert_int_equal(scene->n, 0);
	}
}

static void test_what_is_dropped_is_counted_by_kinds_that_were_asked_for(void **state)
{
	struct scene *scene = *state;

	scene->control.dropped[3] = 5;
	scene->control.dropped[2] = 2;
	scene->control.dropped[4] = 100; /* replays, of which nothing is told */
	assert_int_equal(uvm_queue_dropped(scene->queue), 7);
}

static void test_numbers_beyond_the_queue_are_taken_within_it(void **state)
{
	struct scene *scene = *state;

	put(scene, 1);
	scene->control.put_behind = 0xfffffff9; /* 1 of 8 */
	read_all(scene);
	assert_int_equal(scene->n, 1);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int refused(pid_t pid, int fd)
{
	struct uvm_queue *queue = NULL;
	struct err err = { 0 };
	int r = uvm_queue_open(pid, fd, UVM_QUEUE_LEAST, NULL, &queue, &err);

	assert_null(queue);
	assert_true(r < 0 && err.text[0]);
	return r;
}

static void test_no_other_descriptor_is_taken_for_a_space(void **state)
{
	int null = open("/dev/null", O_RDWR), file = open("/proc/self/stat", O_RDONLY), ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(refused(getpid(), null), -EPROTOTYPE);
	assert_int_equal(refused(getpid(), file), -EPROTOTYPE);
	assert_int_equal(refused(getpid(), ends[0]), -EPROTOTYPE);
	assert_int_equal(refused(getpid(), 100000), -EPROTOTYPE);
	assert_int_equal(refused(getpid(), -1), -EPROTOTYPE);
	close(null);
	close(file);
	close(ends[0]);
	close(ends[1]);
}

static void test_a_process_that_is_gone(void **state)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(refused(child, 0), -EPROTOTYPE);
}

/* ---- whose it is ----------------------------------------------------------------------------- */

#define HELD 100 /* what stands for an address space, in a child */

static void *stay(void *data)
{
	pause();
	return NULL;
}

static void keeps_it(void)
{
	dup2(HELD, HELD + 1);
	close(HELD + 1);
}

static void closes_it(void)
{
	close(HELD);
}

static void has_another_file_there(void)
{
	dup2(STDIN_FILENO, HELD);
}

static void becomes_another_program(void)
{
	fcntl(HELD, F_SETFD, FD_CLOEXEC);
	execlp("sleep", "sleep", "60", NULL);
}

static void ends_its_first_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, stay, NULL);
	pthread_exit(NULL);
}

/* Whether its space is closed after a child has done that, as it is seen within two seconds. */
static bool is_closed_after(struct scene *scene, void (*act)(void))
{
	int go[2], held = open("/dev/zero", O_RDONLY);
	bool closed = false;
	pid_t child;

	assert_true(held >= 0 && pipe(go) == 0);
	child = fork();
	if (!child) {
		char word;

		dup2(held, HELD);
		close(held);
		close(go[1]);
		if (read(go[0], &word, 1) == 1)
			act();
		pause();
		_exit(0);
	}
	assert_int_equal(uvm_queue_hold(scene->queue, child, HELD, dup(held)), 0);
	for (int i = 0; i < 200 && uvm_queue_is_closed(scene->queue); i++)
		usleep(10000);
	assert_false(uvm_queue_is_closed(scene->queue));
	assert_int_equal(write(go[1], "!", 1), 1);
	for (int i = 0; i < (act == keeps_it || act == ends_its_first_thread ? 30 : 200); i++) {
		closed |= uvm_queue_is_closed(scene->queue);
		usleep(closed ? 0 : 10000);
	}
	assert_false(uvm_queue_is_over(scene->queue));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(uvm_queue_is_over(scene->queue));
	assert_false(uvm_queue_is_closed(scene->queue));
	close(held);
	close(go[0]);
	close(go[1]);
	return closed;
}

static void test_a_space_that_its_process_keeps(void **state)
{
	assert_false(is_closed_after(*state, keeps_it));
}

static void test_a_space_that_its_process_closes(void **state)
{
	assert_true(is_closed_after(*state, closes_it));
}

static void test_a_space_in_whose_place_is_another_file(void **state)
{
	assert_true(is_closed_after(*state, has_another_file_there));
}

static void test_a_space_of_a_process_that_becomes_another_program(void **state)
{
	assert_true(is_closed_after(*state, becomes_another_program));
}

static void test_a_space_of_a_process_whose_first_thread_has_ended(void **state)
{
	assert_false(is_closed_after(*state, ends_its_first_thread));
}

/* ---- what is asked of the driver ---------------------------------------------------------------
 */

static int asked_fd = -1;
static unsigned long asked;

int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	asked_fd = fd;
	asked = request;
	return 0;
}

/* The tools' device knows no such command: it is one of the address space's. */
static void test_the_address_space_is_asked_to_tell_what_is_done(void **state)
{
	struct scene *scene = *state;
	struct stat st, space;
	int null = open("/dev/null", O_RDWR);

	assert_int_equal(uvm_queue_hold(scene->queue, getpid(), null, dup(null)), 0);
	uvm_queue_flush(scene->queue);
	assert_int_equal(asked, 67);
	assert_true(asked_fd >= 0 && asked_fd != null);
	assert_int_equal(fstat(asked_fd, &space), 0);
	assert_int_equal(fstat(null, &st), 0);
	assert_int_equal(space.st_rdev, st.st_rdev);
	close(null);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, scene_new, scene_free)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults_of_the_host),
		cmocka_unit_test(test_faults_of_gpus_fatal_ones_and_throttling),
		cmocka_unit_test(test_thrashing_has_a_size),
		cmocka_unit_test(test_a_migration_takes_what_the_gpu_says),
		cmocka_unit_test(
			test_a_migration_without_times_of_the_gpu_ends_when_the_driver_knew),
		cmocka_unit_test(test_causes_of_migrations),
		cmocka_unit_test(test_other_events_are_passed_over),
		cmocka_unit_test_setup_teardown(test_each_event_is_read_once_also_around_the_end,
		                                scene_new, scene_free),
		cmocka_unit_test_setup_teardown(
			test_what_is_dropped_is_counted_by_kinds_that_were_asked_for, scene_new,
			scene_free),
		cmocka_unit_test_setup_teardown(test_numbers_beyond_the_queue_are_taken_within_it,
		                                scene_new, scene_free),
		cmocka_unit_test(test_no_other_descriptor_is_taken_for_a_space),
		cmocka_unit_test(test_a_process_that_is_gone),
		SCENE(test_the_address_space_is_asked_to_tell_what_is_done),
		SCENE(test_a_space_that_its_process_keeps),
		SCENE(test_a_space_that_its_process_closes),
		SCENE(test_a_space_in_whose_place_is_another_file),
		SCENE(test_a_space_of_a_process_that_becomes_another_program),
		SCENE(test_a_space_of_a_process_whose_first_thread_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
