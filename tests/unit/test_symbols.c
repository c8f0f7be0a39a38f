// SPDX-License-Identifier: MIT
/* Addresses of processes that run, and of some that have ended. */
#include "elf_build.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "stack/symbols.h"

/*
 * Says where its function is, then does what it is told: "PATH SYMBOL" loads a library and says
 * where that is, "code" makes code, "map" also says its name in a perf map, "exec PATH" becomes
 * another program.
 */
static const char teller[] =
	"#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n"
	"#include <sys/mman.h>\n#include <unistd.h>\n"
	"namespace leaky { struct Model { int grow_cache(unsigned long n); }; \n"
	"__attribute__((noinline)) int Model::grow_cache(unsigned long n) { return n * 3; } }\n"
	"static void *code() { return mmap(0, 4096, 5, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }\n"
	"static void *map() { void *at = code(); char path[64]; \n"
	"  sprintf(path, \"/tmp/perf-%d.map\", getpid()); FILE *f = fopen(path, \"w\");\n"
	"  fprintf(f, \"%lx 40 py::train:/app/train.py\\n\", (unsigned long)at); fclose(f);\n"
	"  return at; }\n"
	"int main(int argc, char **argv) {\n"
	"  char line[512], path[400], name[100];\n"
	"  auto at = &leaky::Model::grow_cache; void *p; memcpy(&p, &at, sizeof p);\n"
	"  printf(\"%lx\\n\", (unsigned long)p); fflush(stdout);\n"
	"  while (fgets(line, sizeof line, stdin)) {\n"
	"    if (!strncmp(line, \"code\", 4)) p = code();\n"
	"    else if (!strncmp(line, \"map\", 3)) p = map();\n"
	"    else if (sscanf(line, \"exec %399s\", path) == 1) execl(path, path, (char *)0);\n"
	"    else if (sscanf(line, \"%399s %99s\", path, name) == 2) {\n"
	"      void *h = dlopen(path, RTLD_NOW); p = h ? dlsym(h, name) : 0; }\n"
	"    printf(\"%lx\\n\", (unsigned long)p); fflush(stdout); }\n"
	"  return 0; }\n";

static const char library[] = "int beta(int n) { return n + 1; }\n";

static void make_program(const char *name, const char *flags)
{
	write_file(in_dir("teller.cc"), teller);
	run("g++ -O1 -o %s teller.cc %s -ldl", name, flags);
}

static void make_library(const char *name)
{
	write_file(in_dir("library.c"), library);
	run("gcc -O1 -shared -fPIC -o %s library.c", name);
}

struct told {
	struct process process;
	FILE *to, *from;
	uint64_t grow_cache;
};

static uint64_t read_address(struct told *told)
{
	unsigned long address = 0;

	assert_int_equal(fscanf(told->from, "%lx", &address), 1);
	return address;
}

static void start(struct told *told, const char *path)
{
	static uint32_t next_id;
	int to[2], from[2];
	pid_t pid;

	memset(told, 0, sizeof(*told));
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	close(to[0]);
	close(from[1]);
	told->process.id = next_id++;
	told->process.pid = (uint32_t)pid;
	told->to = fdopen(to[1], "w");
	told->from = fdopen(from[0], "r");
	told->grow_cache = read_address(told);
}

__attribute__((format(printf, 2, 3))) static uint64_t tell(struct told *told, const char *fmt, ...)
{
	uint64_t address;
	va_list ap;

	va_start(ap, fmt);
	vfprintf(told->to, fmt, ap);
	va_end(ap);
	fputc('\n', told->to);
	fflush(told->to);
	address = read_address(told);
	assert_true(address != 0);
	return address;
}

static void end(struct told *told)
{
	if (!told->process.pid)
		return;
	kill((pid_t)told->process.pid, SIGKILL);
	waitpid((pid_t)told->process.pid, NULL, 0);
	fclose(told->to);
	fclose(told->from);
	told->process.pid = 0;
}

/* "grow_cache(int)", "libfoo.so+0x1234", "[anon]+0x20", "0x7f0012345678" */
static void add_name(struct buf *out, const struct frame *frame)
{
	if (frame->function)
		buf_puts(out, frame->function);
	else if (frame->module)
		buf_printf(out, "%s+0x%llx", frame->module, (unsigned long long)frame->into_bytes);
	else
		buf_printf(out, "0x%llx", (unsigned long long)frame->address);
}

static void expect(struct symbols *symbols, const struct process *process, uint64_t address,
                   const char *shown, const char *module)
{
	struct buf name = { 0 };
	struct frame frame;

	symbols_find(symbols, process, address, &frame);
	add_name(&name, &frame);
	assert_string_equal(name.data, shown);
	if (module)
		assert_string_equal(frame.module, module);
	else
		assert_null(frame.module);
	buf_free(&name);
}

#define GROW_CACHE "leaky::Model::grow_cache(unsigned long)"

static void expect_found(const char *flags)
{
	struct symbols *symbols = symbols_new();
	struct told told;

	make_program("app", flags);
	start(&told, in_dir("app"));
	expect(symbols, &told.process, told.grow_cache, GROW_CACHE, "app");
	expect(symbols, &told.process, told.grow_cache + 3, GROW_CACHE, "app");
	end(&told);
	symbols_free(symbols);
}

static void test_function_of_a_position_independent_program(void **state)
{
	expect_found("-fPIE -pie");
}

static void test_function_of_a_program_with_fixed_addresses(void **state)
{
	expect_found("-fno-PIE -no-pie");
}

static void test_place_without_a_name_is_given_in_the_file(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;
	struct frame frame;

	make_program("app", "-s");
	start(&told, in_dir("app"));
	symbols_find(symbols, &told.process, told.grow_cache, &frame);
	assert_null(frame.function);
	assert_string_equal(frame.module, "app");
	assert_string_equal(frame.path, in_dir("app"));
	assert_true(frame.into_bytes > 0x1000 && frame.into_bytes < 0x10000);
	end(&told);
	symbols_free(symbols);
}

static void test_library_loaded_later_is_found(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;
	uint64_t beta;

	make_program("app", "");
	make_library("late.so");
	start(&told, in_dir("app"));
	expect(symbols, &told.process, told.grow_cache, GROW_CACHE, "app");
	beta = tell(&told, "%s beta", in_dir("late.so"));
	expect(symbols, &told.process, beta, "beta", "late.so");
	end(&told);
	symbols_free(symbols);
}

static void test_process_that_has_ended_is_still_known(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;
	struct process process;
	uint64_t beta;

	make_program("app", "");
	make_library("late.so");
	start(&told, in_dir("app"));
	beta = tell(&told, "%s beta", in_dir("late.so"));
	assert_int_equal(symbols_see(symbols, &told.process, NULL), 0);
	process = told.process;
	end(&told);
	run("rm app late.so");
	expect(symbols, &process, told.grow_cache, GROW_CACHE, "app");
	expect(symbols, &process, beta, "beta", "late.so");
	symbols_free(symbols);
}

static void test_process_that_was_never_seen_has_no_names(void **state)
{
	struct symbols *symbols = symbols_new();
	struct process process;
	struct err err = { 0 };
	struct told told;

	make_program("app", "");
	start(&told, in_dir("app"));
	process = told.process;
	end(&told);
	assert_int_equal(symbols_see(symbols, &process, &err), -ESRCH);
	assert_non_null(strstr(err.text, "process"));
	expect(symbols, &process, 0x1234, "0x1234", NULL);
	symbols_free(symbols);
}

static void test_deleted_file_is_read(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;

	if (geteuid() != 0)
		SKIP(NEEDS_ROOT);
	make_program("app", "");
	start(&told, in_dir("app"));
	run("rm app");
	expect(symbols, &told.process, told.grow_cache, GROW_CACHE, "app");
	end(&told);
	symbols_free(symbols);
}

static void test_file_that_took_its_place_is_not(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;

	if (geteuid() != 0)
		SKIP(NEEDS_ROOT);
	make_program("app", "");
	start(&told, in_dir("app"));
	run("cp /bin/true other && mv other app");
	expect(symbols, &told.process, told.grow_cache, GROW_CACHE, "app");
	end(&told);
	symbols_free(symbols);
}

/* Code at an address changes hands: the later library is meant, once the process was seen again. */
static void test_exec_makes_another_process(void **state)
{
	struct symbols *symbols = symbols_new();
	struct process before, after;
	struct told told;
	uint64_t old;

	make_program("app", "");
	make_program("second", "-fno-PIE -no-pie");
	start(&told, in_dir("app"));
	before = after = told.process;
	after.id = 1000;
	old = told.grow_cache;
	expect(symbols, &before, old, GROW_CACHE, "app");
	told.grow_cache = tell(&told, "exec %s", in_dir("second"));
	expect(symbols, &after, told.grow_cache, GROW_CACHE, "second");
	expect(symbols, &before, old, GROW_CACHE, "app");
	/* Of the program before, nothing more is to be learned from what the pid runs now. */
	assert_int_equal(symbols_see(symbols, &before, NULL), -ESRCH);
	expect(symbols, &before, old, GROW_CACHE, "app");
	end(&told);
	symbols_free(symbols);
}

static void test_code_made_at_run_time_has_no_name(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;
	uint64_t code;

	make_program("app", "");
	start(&told, in_dir("app"));
	code = tell(&told, "code");
	expect(symbols, &told.process, code + 0x20, "[anon]+0x20", "[anon]");
	end(&told);
	symbols_free(symbols);
}

static void test_code_made_at_run_time_is_named_by_its_perf_map(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;
	uint64_t code;

	make_program("app", "");
	start(&told, in_dir("app"));
	code = tell(&told, "map");
	expect(symbols, &told.process, code + 0x20, "py::train:/app/train.py", "[anon]");
	expect(symbols, &told.process, code + 0x40, "[anon]+0x40", "[anon]");
	run("rm /tmp/perf-%u.map", told.process.pid);
	end(&told);
	symbols_free(symbols);
}

static void test_address_outside_of_everything_is_shown_as_it_is(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;

	make_program("app", "");
	start(&told, in_dir("app"));
	expect(symbols, &told.process, 0x10, "0x10", NULL);
	expect(symbols, &told.process, 0xfffffffffffffff0, "0xfffffffffffffff0", NULL);
	end(&told);
	symbols_free(symbols);
}

/* A call that never returns may be the last instruction of its function. */
static void test_call_belongs_to_the_function_before_its_return_address(void **state)
{
	struct symbols *symbols = symbols_new();
	struct frame frame;
	struct told told;

	make_program("app", "");
	start(&told, in_dir("app"));
	symbols_find(symbols, &told.process, told.grow_cache, &frame);
	assert_int_equal(frame.into_bytes, 0);
	symbols_find_call(symbols, &told.process, told.grow_cache, &frame);
	assert_true(!frame.function || strcmp(frame.function, GROW_CACHE));
	symbols_find_call(symbols, &told.process, told.grow_cache + 4, &frame);
	assert_string_equal(frame.function, GROW_CACHE);
	assert_int_equal(frame.into_bytes, 4);
	assert_int_equal(frame.address, told.grow_cache + 4);
	end(&told);
	symbols_free(symbols);
}

static void test_process_that_was_looked_at_is_known_after_its_end(void **state)
{
	struct symbols *symbols = symbols_new();
	struct process process;
	struct told told;

	make_program("app", "");
	start(&told, in_dir("app"));
	symbols_look(symbols, (pid_t)told.process.pid);
	process = told.process;
	end(&told);
	expect(symbols, &process, told.grow_cache, GROW_CACHE, "app");
	symbols_free(symbols);
}

/* As cp does: the inode stays, what is in it does not. */
static void test_file_that_was_written_over_is_read_again(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told, second;

	make_program("app", "");
	start(&told, in_dir("app"));
	expect(symbols, &told.process, told.grow_cache, GROW_CACHE, "app");
	end(&told);
	make_program("other", "-Wl,-Ttext-segment=0x800000 -DOTHER=1 -O0");
	run("cat other > app");
	start(&second, in_dir("app"));
	expect(symbols, &second.process, second.grow_cache, GROW_CACHE, "app");
	end(&second);
	symbols_free(symbols);
}

static const char many_functions[] =
	".altmacro\n.macro one n\n.globl f\\n\n.type f\\n, @function\nf\\n: nop\n.endm\n"
	".set i, 0\n.rept 30000\none %i\n.set i, i + 1\n.endr\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* A fifth of a second is free, then it is a tenth of the time; else it would be several seconds. */
static void test_file_that_is_written_to_all_the_time_is_not_read_each_time(void **state)
{
	struct symbols *symbols = symbols_new();
	struct told told;
	uint64_t beta;
	clock_t begin;

	make_program("app", "");
	write_file(in_dir("library.c"), library);
	write_file(in_dir("many.s"), many_functions);
	run("gcc -O1 -shared -fPIC -o late.so library.c many.s");
	start(&told, in_dir("app"));
	beta = tell(&told, "%s beta", in_dir("late.so"));
	begin = clock();
	for (int i = 0; i < 2000; i++) {
		const struct timespec times[2] = { { .tv_sec = i }, { .tv_sec = i } };

		assert_int_equal(utimensat(AT_FDCWD, in_dir("late.so"), times, 0), 0);
		expect(symbols, &told.process, beta, "beta", "late.so");
	}
	assert_in_range(clock() - begin, 0, 2 * CLOCKS_PER_SEC);
	end(&told);
	symbols_free(symbols);
}

/* Processor time that `n` processes take which are met from the number `first` on. */
static uint64_t met_ns(struct symbols *symbols, uint32_t first, uint32_t n)
{
	uint64_t begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);

	for (uint32_t i = first; i < first + n; i++) {
		const struct process process = { .id = i, .pid = 7000000 + i };
		struct frame frame;

		symbols_find(symbols, &process, 0, &frame);
	}
	return clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

static void test_a_process_takes_no_longer_where_there_were_many(void **state)
{
	struct symbols *symbols = symbols_new();
	uint64_t first_ns = met_ns(symbols, 0, 1000);

	met_ns(symbols, 1000, 29000);
	assert_true(met_ns(symbols, 30000, 1000) < 3 * first_ns + 10000000);
	symbols_free(symbols);
}

/* A process of a user that maps so many files whose paths have 3,900 letters; where one is. */
struct mapper {
	pid_t pid;
	uint64_t address;
};

static void make_deep(char path[4096])
{
	snprintf(path, 4096, "%s", in_dir("deep"));
	while ((mkdir(path, 0755) == 0 || errno == EEXIST) && strlen(path) < 3700)
		snprintf(path + strlen(path), 4096 - strlen(path), "/%0200d", 0);
	run("cp /bin/true file");
}

static struct mapper map_many(const char *deep, uid_t uid, int n)
{
	static int next;
	uint64_t *said =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct mapper mapper;
	char path[4400];
	uint64_t at;
	int fd;

	mapper.pid = fork();
	if (mapper.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < n; i++) {
			snprintf(path, sizeof(path), "%s/%d", deep, next + i);
			if (link(in_dir("file"), path) < 0 || (fd = open(path, O_RDONLY)) < 0)
				_exit(1);
			at = (uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
			said[1] = said[1] > at ? said[1] : at; /* the last in the list */
			close(fd);
		}
		if (setresuid(uid, uid, uid) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		__atomic_store_n(said, 1, __ATOMIC_RELEASE);
		while (true)
			pause();
	}
	assert_true(mapper.pid > 0);
	next += n;
	while (!__atomic_load_n(said, __ATOMIC_ACQUIRE))
		assert_int_equal(waitpid(mapper.pid, NULL, WNOHANG), 0);
	mapper.address = said[1];
	munmap(said, 4096);
	return mapper;
}

/* By the paths of what they map, three processes have more than there is room for. */
static void test_names_of_one_user_leave_others_room(void **state)
{
	struct symbols *symbols = symbols_new();
	struct mapper mappers[4];
	struct frame frame;
	char deep[4096];

	make_deep(deep);
	for (uint32_t i = 0; i < 4; i++) {
		struct process process = { .id = i };

		mappers[i] = map_many(deep, i < 3 ? 1000 : 1001, i < 3 ? 1700 : 50);
		process.pid = (uint32_t)mappers[i].pid;
		symbols_find(symbols, &process, mappers[i].address, &frame);
		if (i == 0)
			assert_int_equal(symbols_refused(symbols), 0);
	}
	assert_true(symbols_refused(symbols) > 1000);
	assert_non_null(frame.path);
	assert_string_not_equal(frame.path, "[?]");
	assert_true(strlen(frame.path) > 3700);
	for (size_t i = 0; i < 4; i++) {
		kill(mappers[i].pid, SIGKILL);
		waitpid(mappers[i].pid, NULL, 0);
	}
	symbols_free(symbols);
}

/* Of those who have ended; what is mapped now keeps its names. */
static void test_names_of_the_dead_are_given_back(void **state)
{
	struct symbols *symbols = symbols_new();
	struct process living = { .id = 0 }, process;
	struct mapper mapper, first;
	struct frame frame;
	char deep[4096], path[4400];

	make_deep(deep);
	first = map_many(deep, 1001, 50);
	living.pid = (uint32_t)first.pid;
	symbols_find(symbols, &living, first.address, &frame);
	snprintf(path, sizeof(path), "%s", frame.path);
	for (uint32_t i = 1; i < 7; i++) {
		process = (struct process){ .id = i };
		mapper = map_many(deep, 1000, 1200);
		process.pid = (uint32_t)mapper.pid;
		symbols_find(symbols, &process, mapper.address, &frame);
		assert_true(strlen(frame.path) > 3700);
		kill(mapper.pid, SIGKILL);
		waitpid(mapper.pid, NULL, 0);
		symbols_forget(symbols, &process);
		if (symbols_are_worn(symbols))
			symbols_renew(symbols);
		assert_false(symbols_are_worn(symbols));
		symbols_find(symbols, &living, first.address, &frame);
		assert_string_equal(frame.path, path);
	}
	assert_int_equal(symbols_refused(symbols), 0);
	kill(first.pid, SIGKILL);
	waitpid(first.pid, NULL, 0);
	symbols_free(symbols);
}

/* Neither what is noted anew of a process nor an exec gives it room for further names. */
static void test_a_process_has_the_names_of_one_as_long_as_it_lives(void **state)
{
	struct symbols *symbols = symbols_new();
	struct process process = { 0 };
	struct mapper mapper;
	struct frame frame;
	uint64_t refused;
	char deep[4096];

	make_deep(deep);
	mapper = map_many(deep, 1000, 2300);
	process.pid = (uint32_t)mapper.pid;
	for (int i = 0; i < 6; i++) {
		refused = symbols_refused(symbols);
		if (i < 3) {
			symbols_look(symbols, mapper.pid);
		} else {
			symbols_find(symbols, &process, mapper.address, &frame);
			symbols_execed(symbols, &process);
		}
		assert_true(symbols_refused(symbols) > refused + 100);
	}
	kill(mapper.pid, SIGKILL);
	waitpid(mapper.pid, NULL, 0);
	symbols_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_of_a_position_independent_program),
		cmocka_unit_test(test_function_of_a_program_with_fixed_addresses),
		cmocka_unit_test(test_place_without_a_name_is_given_in_the_file),
		cmocka_unit_test(test_library_loaded_later_is_found),
		cmocka_unit_test(test_process_that_has_ended_is_still_known),
		cmocka_unit_test(test_process_that_was_never_seen_has_no_names),
		cmocka_unit_test(test_deleted_file_is_read),
		cmocka_unit_test(test_file_that_took_its_place_is_not),
		cmocka_unit_test(test_exec_makes_another_process),
		cmocka_unit_test(test_names_of_one_user_leave_others_room),
		cmocka_unit_test(test_names_of_the_dead_are_given_back),
		cmocka_unit_test(test_a_process_has_the_names_of_one_as_long_as_it_lives),
		cmocka_unit_test(test_a_process_takes_no_longer_where_there_were_many),
		cmocka_unit_test(test_code_made_at_run_time_has_no_name),
		cmocka_unit_test(test_code_made_at_run_time_is_named_by_its_perf_map),
		cmocka_unit_test(test_address_outside_of_everything_is_shown_as_it_is),
		cmocka_unit_test(test_call_belongs_to_the_function_before_its_return_address),
		cmocka_unit_test(test_process_that_was_looked_at_is_known_after_its_end),
		cmocka_unit_test(test_file_that_was_written_over_is_read_again),
		cmocka_unit_test(test_file_that_is_written_to_all_the_time_is_not_read_each_time),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
