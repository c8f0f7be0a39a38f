// SPDX-License-Identifier: MIT
/* A watcher at the ends of processes; the kernel's sums are an array here. */
#include "unit.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "bpf/wire_fold.h"
#include "capture/stacks/sampler.h"
#include "capture/pipeline.h"
#include "capture/watch/watcher.h"
#include "probe/fold.h"

#define PROCESSES 1200   /* more than are told apart once they have ended */
#define FIRST     100000 /* the number of the first of them */
#define HANDLE    0x10000
#define USER      7      /* whose they are */
#define READ_NS   500000 /* that a map takes, whatever is in it */

static struct {
	struct fold_process_key key;
	bool gone, freed; /* its row; its allocation's */
} totals[PROCESSES];

static struct {
	struct watcher *watcher;
	struct pipeline *pipeline;
	struct watch_options watch;
	struct wire_state state;
	size_t n_totals, reads;
	bool launched; /* the first process, once, by HANDLE */
	/* of the last page */
	uint64_t went_with_process;
	bool has_first; /* the first process is told apart */
	char kernel[64];
	bool resolved;
	const struct stack *of_first; /* of the allocation of the first process */
	const struct stack *of_left;  /* of what one that ended left behind */
	uint64_t stacks_turn;
	/* of the sampler */
	uint64_t live_stack; /* the number of that of each allocation */
	bool worn;
	unsigned asked, renewed, moved;
} scene;

/* ---- in place of the library's -------------------------------------------------------------- */

int __wrap_fold_read(struct programs *programs, const char *map, size_t key_bytes,
                     size_t value_bytes, struct fold_table *table);
void __wrap_fold_delete(struct programs *programs, const char *map, const void *key);
void __wrap_fold_delete_live(struct programs *programs, const void *key, uint32_t user);
struct wire_state *__wrap_programs_state(const struct programs *programs);
void __wrap_programs_lost(struct programs *programs, uint64_t lost[LOST_COUNT]);
const struct hook *__wrap_modules_hook(const struct modules *modules, uint16_t id,
                                       const struct module **module);
uint64_t __wrap_modules_unseen(const struct modules *modules);

static void add_row(struct fold_table *table, const void *key, const void *value)
{
	memcpy(table->keys + table->count * table->key_bytes, key, table->key_bytes);
	memcpy(table->values + table->count++ * table->value_bytes, value, table->value_bytes);
}

static void read_totals(struct fold_table *table)
{
	const struct fold_totals one = { .allocated = { 1, 512 } };

	for (size_t i = 0; i < scene.n_totals; i++) {
		if (!totals[i].gone)
			add_row(table, &totals[i].key, &one);
	}
}

/* One allocation of each process that is in the totals. */
static void read_live(struct fold_table *table)
{
	const struct fold_allocation allocation = { .bytes = 512,
		                                    .stack = scene.live_stack,
		                                    .user = USER };

	for (size_t i = 0; i < scene.n_totals; i++) {
		const struct fold_memory_key key = { .born_ns = totals[i].key.born_ns,
			                             .tgid = totals[i].key.tgid };

		if (!totals[i].freed)
			add_row(table, &key, &allocation);
	}
}

static void read_launches(struct fold_table *table)
{
	const struct fold_launch_key key = { .born_ns = 1, .handle = HANDLE, .tgid = FIRST };
	const struct fold_launch launch = { .count = 1 };

	if (scene.launched)
		add_row(table, &key, &launch);
}

int __wrap_fold_read(struct programs *programs, const char *map, size_t key_bytes,
                     size_t value_bytes, struct fold_table *table)
{
	const struct timespec takes = { .tv_nsec = READ_NS };

	scene.reads++;
	nanosleep(&takes, NULL);
	*table = (struct fold_table){ .key_bytes = key_bytes,
		                      .value_bytes = value_bytes,
		                      .keys = xmalloc((PROCESSES + 1) * key_bytes),
		                      .values = xmalloc((PROCESSES + 1) * value_bytes) };
	if (!strcmp(map, "fold_totals"))
		read_totals(table);
	else if (!strcmp(map, "fold_live"))
		read_live(table);
	else if (!strcmp(map, "fold_launches"))
		read_launches(table);
	return 0;
}

void __wrap_fold_delete(struct programs *programs, const char *map, const void *key)
{
	const struct fold_process_key *process = key;

	if (strcmp(map, "fold_totals") || process->tgid < FIRST)
		return;
	totals[process->tgid - FIRST].gone = true;
}

void __wrap_fold_delete_live(struct programs *programs, const void *key, uint32_t user)
{
	const struct fold_memory_key *memory = key;

	totals[memory->tgid - FIRST].freed = true;
	scene.state.user_rows[user]--;
	scene.state.live_rows--;
}

struct wire_state *__wrap_programs_state(const struct programs *programs)
{
	return &scene.state;
}

void __wrap_programs_lost(struct programs *programs, uint64_t lost[LOST_COUNT])
{
}

const struct hook *__wrap_modules_hook(const struct modules *modules, uint16_t id,
                                       const struct module **module)
{
	return NULL;
}

uint64_t __wrap_modules_unseen(const struct modules *modules)
{
	return 0;
}

/* ---- in place of the sampler's ------------------------------------------------------------- */

bool __wrap_sampler_is_worn(const struct sampler *sampler);
void __wrap_sampler_send_anew(struct sampler *sampler);
void __wrap_sampler_renew(struct sampler *sampler, void (*move_held)(void *data), void *data);
const struct stack *__wrap_sampler_move(struct sampler *sampler, uint32_t process, uint64_t person,
                                        const struct stack *stack);

bool __wrap_sampler_is_worn(const struct sampler *sampler)
{
	return scene.worn;
}

void __wrap_sampler_send_anew(struct sampler *sampler)
{
	scene.asked++;
}

void __wrap_sampler_renew(struct sampler *sampler, void (*move_held)(void *data), void *data)
{
	scene.moved = 0;
	scene.renewed++;
	scene.worn = false;
	move_held(data);
}

/* Each is the next one behind it, as long as it is moved. */
const struct stack *__wrap_sampler_move(struct sampler *sampler, uint32_t process, uint64_t person,
                                        const struct stack *stack)
{
	scene.moved += stack != NULL;
	return stack ? stack + 1 : NULL;
}

/* ---- the scene ------------------------------------------------------------------------------ */

static int on_page(void *data, const struct watch_page *page, struct err *err)
{
	scene.went_with_process = scene.has_first = 0;
	for (size_t i = 0; page->memory && i < page->memory->n_totals; i++) {
		const struct watch_memory_totals *row = &page->memory->totals[i];

		scene.went_with_process += row->exit.count;
		scene.has_first |= row->process->pid == FIRST;
	}
	if (page->memory && page->memory->n_allocations) {
		scene.of_first = page->memory->allocations[0].stack;
		scene.stacks_turn = page->memory->stacks_turn;
	}
	if (page->memory && page->memory->n_left)
		scene.of_left = page->memory->left[0].stack;
	if (page->launches) {
		assert_int_equal(page->launches->n_kernels, 1);
		snprintf(scene.kernel, sizeof(scene.kernel), "%s",
		         page->launches->kernels->kernel->name);
		scene.resolved = page->launches->kernels->kernel->resolved;
	}
	return 0;
}

static void begin(unsigned tools)
{
	const struct pipeline_options of_pipeline = { .state = &scene.state };
	struct watcher_options options = { .watch = &scene.watch };

	scene.pipeline = options.pipeline = pipeline_new(&of_pipeline);
	scene.watch = (struct watch_options){
		.tools = tools, .interval_ns = UINT64_MAX, .forget = true, .page = on_page
	};
	scene.watcher = watcher_new(&options);
	watcher_begin(scene.watcher, &(struct run_info){ .begin_ns = clock_now_ns() });
}

static void give(struct wire_head *record)
{
	struct err err = { 0 };

	record->time_ns = clock_now_ns();
	assert_false(watcher_before(scene.watcher, record));
	assert_int_equal(pipeline_record(scene.pipeline, record, &err), 0);
	watcher_after(scene.watcher, record);
}

static void process_begins(uint32_t pid, uint64_t born_ns)
{
	struct wire_process thread = { .head = { .type = WIRE_THREAD, .tgid = pid, .tid = pid },
		                       .born_ns = born_ns,
		                       .comm = "one" };

	give(&thread.head);
}

static void process_ends(uint32_t pid)
{
	struct wire_process record = { .head = { .type = WIRE_EXIT, .tgid = pid, .tid = pid } };

	give(&record.head);
}

static void names(uint32_t pid, const char *text)
{
	struct wire_name name = { .head = { .type = WIRE_NAME, .tgid = pid, .tid = pid },
		                  .source = NAME_OF_HANDLE,
		                  .key = HANDLE };

	name.head.bytes = (uint16_t)(snprintf(name.text, sizeof(name.text), "%s", text) + 1);
	give(&name.head);
}

static void last_page(void)
{
	const struct run_info run = { .end_ns = clock_now_ns() };
	struct err err = { 0 };

	assert_int_equal(watcher_end(scene.watcher, &run, &err), 0);
}

static int fresh(void **state)
{
	memset(&scene, 0, sizeof(scene));
	memset(totals, 0, sizeof(totals));
	return 0;
}

static int done(void **state)
{
	watcher_free(scene.watcher);
	pipeline_free(scene.pipeline);
	return 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void all_begin(void)
{
	begin(WATCH_MEMORY);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		totals[i].key = (struct fold_process_key){ .born_ns = i + 1, .tgid = FIRST + i };
		process_begins(FIRST + i, i + 1);
	}
	scene.n_totals = PROCESSES;
}

/* Each map is read as a whole, so it is read for many at once. */
static void test_ends_of_many_processes_are_taken_in_together(void **state)
{
	struct err err = { 0 };
	size_t of_one;

	all_begin();
	process_ends(FIRST);
	assert_int_equal(watcher_tick(scene.watcher, clock_now_ns(), &err), 0);
	assert_true(totals[0].gone); /* one alone: at once */
	of_one = scene.reads;
	assert_int_not_equal(of_one, 0);
	for (uint32_t i = 1; i < PROCESSES; i++) {
		process_ends(FIRST + i);
		assert_int_equal(watcher_tick(scene.watcher, clock_now_ns(), &err), 0);
	}
	assert_in_range(scene.reads, of_one, 20 * of_one);
	last_page();
	for (size_t i = 0; i < PROCESSES; i++)
		assert_true(totals[i].gone);
	assert_int_equal(scene.went_with_process, PROCESSES);
	assert_int_equal(scene.state.live_rows, 0); /* as the map was read, and rows deleted */
	assert_int_equal(scene.state.user_rows[USER], 0);
}

/* And not those that began last: the first one may be what the others worked for. */
static void test_those_that_ended_last_are_told_apart(void **state)
{
	struct err err = { 0 };

	all_begin();
	scene.watch.interval_ns = 0; /* each tick is a page */
	for (uint32_t i = PROCESSES; i-- > 0;)
		process_ends(FIRST + i);
	assert_int_equal(watcher_tick(scene.watcher, clock_now_ns(), &err), 0);
	assert_int_equal(watcher_tick(scene.watcher, clock_now_ns(), &err), 0);
	assert_true(scene.has_first);
	assert_int_equal(scene.went_with_process, PROCESSES);
}

/* The first launch of a kernel was lost, and what was told of the handle is of another process. */
static void test_a_kernel_of_an_ended_process_is_not_one_of_the_next_with_its_number(void **state)
{
	begin(WATCH_LAUNCHES);
	scene.launched = true;
	process_begins(FIRST, 1);
	process_ends(FIRST);
	process_begins(FIRST, 2);
	names(FIRST, "_Z6secondv");
	last_page();
	assert_string_equal(scene.kernel, "0x10000");
	assert_false(scene.resolved);
}

static void test_a_kernel_of_a_process_that_runs_has_its_name(void **state)
{
	begin(WATCH_LAUNCHES);
	scene.launched = true;
	process_begins(FIRST, 1);
	names(FIRST, "_Z5firstv");
	last_page();
	assert_string_equal(scene.kernel, "first()");
	assert_true(scene.resolved);
}

/* ---- stacks that nothing is of -------------------------------------------------------------- */

#define SECOND 1000000000ull

static struct stack made_stacks[8];

static void one_holds_memory(uint64_t stack)
{
	begin(WATCH_MEMORY);
	watcher_renews(scene.watcher, (struct sampler *)&scene);
	scene.watch.interval_ns = 0; /* each tick is a page */
	totals[0].key = (struct fold_process_key){ .born_ns = 1, .tgid = FIRST };
	scene.n_totals = 1;
	scene.live_stack = stack;
	process_begins(FIRST, 1);
}

static void page_at(uint64_t now_ns)
{
	struct err err = { 0 };

	assert_int_equal(watcher_tick(scene.watcher, now_ns, &err), 0);
}

static void test_stacks_of_live_memory_stay_and_others_go(void **state)
{
	uint64_t now;

	one_holds_memory(7);
	now = clock_now_ns();
	watcher_stack(scene.watcher, FIRST, 7, &made_stacks[0]);
	watcher_stack(scene.watcher, FIRST, 8, &made_stacks[4]);
	page_at(now);
	assert_ptr_equal(scene.of_first, &made_stacks[0]);
	scene.worn = true;
	page_at(now += SECOND);
	assert_int_equal(scene.asked, 1);
	page_at(now += SECOND); /* calls that began before are waited for */
	assert_int_equal(scene.renewed, 0);
	assert_ptr_equal(scene.of_first, &made_stacks[0]);
	page_at(now += 2 * SECOND);
	assert_int_equal(scene.renewed, 1);
	assert_int_equal(scene.moved, 1);
	assert_ptr_equal(scene.of_first, &made_stacks[1]); /* where it is now */
	assert_int_equal(scene.stacks_turn, 1);
	scene.live_stack = 8; /* it is not known any more, and never another one */
	page_at(now += SECOND);
	assert_null(scene.of_first);
	watcher_stack(scene.watcher, FIRST, 8, &made_stacks[5]);
	page_at(now += SECOND);
	assert_ptr_equal(scene.of_first, &made_stacks[5]);
	assert_int_equal(scene.asked, 1);
}

/* A call that begins while they are given back: its memory is there a moment later. */
static void test_stacks_that_were_sent_again_stay(void **state)
{
	uint64_t now;

	one_holds_memory(0);
	now = clock_now_ns();
	watcher_stack(scene.watcher, FIRST, 7, &made_stacks[0]);
	scene.worn = true;
	page_at(now);
	assert_int_equal(scene.asked, 1);
	watcher_stack(scene.watcher, FIRST, 7, &made_stacks[0]);
	page_at(now += 3 * SECOND);
	assert_int_equal(scene.renewed, 1);
	scene.live_stack = 7;
	page_at(now += SECOND);
	assert_ptr_equal(scene.of_first, &made_stacks[1]);
}

/* Until the page that tells it. */
static void test_stacks_of_what_was_left_behind_stay(void **state)
{
	uint64_t now;

	one_holds_memory(7);
	now = clock_now_ns();
	watcher_stack(scene.watcher, FIRST, 7, &made_stacks[0]);
	scene.watch.interval_ns = UINT64_MAX;
	scene.worn = true;
	process_ends(FIRST);
	page_at(now);
	page_at(now += 3 * SECOND);
	assert_int_equal(scene.renewed, 1);
	assert_null(scene.of_left);
	scene.watch.interval_ns = 0;
	page_at(now += SECOND);
	assert_ptr_equal(scene.of_left, &made_stacks[1]);
}

#define MANY 40000

static void many_are_told(void)
{
	for (uint64_t i = 0; i < MANY; i++)
		watcher_stack(scene.watcher, FIRST, 1 + i, &made_stacks[0]);
}

/* Without that there were others who need room. */
static void test_stacks_of_who_has_ended_are_given_back(void **state)
{
	uint64_t now;

	one_holds_memory(0);
	now = clock_now_ns();
	many_are_told();
	page_at(now += SECOND);
	assert_int_equal(scene.asked, 1);
	many_are_told(); /* again, as they are asked for */
	page_at(now += 3 * SECOND);
	assert_int_equal(scene.renewed, 1);
	assert_int_equal(scene.moved, MANY);
	page_at(now += 60 * SECOND);
	assert_int_equal(scene.asked, 1);
	process_ends(FIRST);
	for (int i = 0; i < 3; i++) /* the page that has what it left, and those after it */
		page_at(now += SECOND);
	assert_int_equal(scene.asked, 2);
	page_at(now += 3 * SECOND);
	assert_int_equal(scene.renewed, 2);
	assert_int_equal(scene.moved, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fresh, done)
	const struct CMUnitTest tests[] = {
		T(test_ends_of_many_processes_are_taken_in_together),
		T(test_those_that_ended_last_are_told_apart),
		T(test_a_kernel_of_an_ended_process_is_not_one_of_the_next_with_its_number),
		T(test_a_kernel_of_a_process_that_runs_has_its_name),
		T(test_stacks_of_live_memory_stay_and_others_go),
		T(test_stacks_that_were_sent_again_stay),
		T(test_stacks_of_what_was_left_behind_stay),
		T(test_stacks_of_who_has_ended_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
