// SPDX-License-Identifier: MIT
/* Lines and inlined functions of files that the compiler made, and of files that lie. */
#include "elf_build.h"

#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "stack/lines/source_lines_inside.h"

#define SECOND 1000000000ull

/* Each `mark` is at a line of its own; the third is inlined twice. */
static const char program[] =
	"#define MARK(text) __asm__ volatile(\"jmp 1f\\n.ascii \\\"\" text \"\\\"\\n1:\")\n"
	"static inline __attribute__((always_inline)) void inner(void)\n"
	"{\n"
	"	MARK(\"MARK INNER\");\n" /* 4 */
	"}\n"
	"static inline __attribute__((always_inline)) void middle(void)\n"
	"{\n"
	"	inner();\n" /* 8 */
	"}\n"
	"void outer(void)\n" /* 10 */
	"{\n"
	"	MARK(\"MARK OUTER\");\n" /* 12 */
	"	middle();\n"             /* 13 */
	"}\n"
	"void start(void) { outer(); }\n";

#define TARGET "-O2 -pie -fPIE -nostdlib -Wl,-e,start -Wl,--build-id=sha1"

static uint64_t offset_of(int fd, const char *mark)
{
	static char bytes[1 << 20];
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);
	const char *at = memmem(bytes, (size_t)len, mark, strlen(mark));

	assert_non_null(at);
	return (uint64_t)(at - bytes) - 2; /* the jump over it */
}

/* ---- looking up ---------------------------------------------------------------------------- */

struct found {
	size_t n;
	char text[2048];
};

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "-";
}

/* "inner a.c:4 of 3 < middle a.c:8 of 7" */
static void note_found(void *data, void *what, const struct lines_part *parts, size_t n)
{
	struct found *found = what;
	struct buf text = { 0 };

	found->n = n;
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s%s %s:%u of %u", i ? " < " : "",
		           parts[i].function ? parts[i].function : "-", base_name(parts[i].file),
		           parts[i].line, parts[i].first_line);
	snprintf(found->text, sizeof(found->text), "%s", text.data);
	buf_free(&text);
}

static size_t look_up_place(const struct source_lines_place *place, void (*reader)(int socket),
                            struct found *found, struct source_lines_figures *figures)
{
	struct source_lines *lines = source_lines_new(reader);
	size_t left;

	if (!lines)
		SKIP("built without libdw");
	*found = (struct found){ 0 };
	source_lines_want(lines, place, found);
	left = source_lines_wait(lines, 8 * SECOND);
	source_lines_each(lines, note_found, NULL);
	source_lines_figures(lines, figures);
	source_lines_free(lines);
	return left;
}

static size_t look_up(int fd, uint64_t offset, const char *build_id, void (*reader)(int socket),
                      struct found *found, struct source_lines_figures *figures)
{
	const struct source_lines_place place = { fd, offset, in_dir("a.out"), build_id, false };

	return look_up_place(&place, reader, found, figures);
}

/* Of a place whose function a symbol names. */
static void look_up_named(int fd, uint64_t offset, struct found *found)
{
	const struct source_lines_place place = { fd, offset, in_dir("a.out"), NULL, true };
	struct source_lines_figures figures;

	assert_int_equal(look_up_place(&place, reader_main, found, &figures), 0);
	assert_int_equal(figures.files, 1);
}

static void expect(int fd, const char *mark, const char *text)
{
	struct source_lines_figures figures;
	struct found found;

	assert_int_equal(look_up(fd, offset_of(fd, mark), NULL, reader_main, &found, &figures), 0);
	assert_false(figures.rights);
	assert_string_equal(found.text, text);
}

static void test_inlined_functions_and_their_lines(void **state)
{
	int fd = build(program, TARGET " -g");

	expect(fd, "MARK INNER", "inner a.c:4 of 2 < middle a.c:8 of 6 < outer a.c:13 of 10");
	expect(fd, "MARK OUTER", "outer a.c:12 of 10");
	close(fd);
}

/* The linker has no names for what was inlined everywhere: where it stands in the source says them.
 */
static const char in_scopes[] =
	"namespace space { namespace {\n"
	"template <typename T> struct Thing {\n"
	"	__attribute__((always_inline)) void step()\n"
	"	{\n"
	"		__asm__ volatile(\"jmp 1f\\n.ascii \\\"MARK STEP\\\"\\n1:\");\n" /* 5 */
	"	}\n"
	"}; } }\n"
	"extern \"C\" void start(void)\n"
	"{\n"
	"	space::Thing<int>().step();\n" /* 10 */
	"}\n";

static void test_names_of_inlined_functions_have_their_scopes(void **state)
{
	int fd;

	write_file(in_dir("a.cc"), in_scopes);
	run("g++ -g " TARGET " -o a.out a.cc");
	fd = reopen();
	expect(fd, "MARK STEP",
	       "space::(anonymous namespace)::Thing<int>::step a.cc:5 of 3 < start a.cc:10 of 8");
	close(fd);
}

/* Of a file of half a million symbols that would take a second, and function_table.h has them. */
static void test_a_file_without_debug_information_is_not_read(void **state)
{
	int fd = build(program, TARGET);
	struct source_lines_figures figures;
	struct found found;

	assert_int_equal(
		look_up(fd, offset_of(fd, "MARK INNER"), NULL, reader_main, &found, &figures), 0);
	assert_string_equal(found.text, "");
	assert_int_equal(figures.files, 0);
	assert_int_equal(figures.places, 1);
	close(fd);
}

static void test_names_in_the_compressed_section(void **state)
{
	int fd = build(program, TARGET);
	uint64_t inner = offset_of(fd, "MARK INNER");
	struct source_lines_figures figures;
	struct found found;

	close(fd);
	run("objcopy -S --remove-section .gnu_debugdata --keep-symbol=outer a.out mini && "
	    "xz -c mini >mini.xz && strip -s a.out && "
	    "objcopy --add-section .gnu_debugdata=mini.xz a.out");
	fd = reopen();
	look_up(fd, inner, NULL, reader_main, &found, &figures);
	assert_string_equal(found.text, "outer -:0 of 0");
	look_up_named(fd, inner, &found);
	assert_string_equal(found.text, "");
	close(fd);
}

static void test_of_a_function_that_is_known_the_lines_are_told(void **state)
{
	int fd = build(program, TARGET " -g");
	struct found found;

	look_up_named(fd, offset_of(fd, "MARK INNER"), &found);
	assert_string_equal(found.text,
	                    "inner a.c:4 of 2 < middle a.c:8 of 6 < outer a.c:13 of 10");
	close(fd);
}

static void test_a_stripped_file_tells_nothing(void **state)
{
	int fd = build(program, TARGET " -s");

	expect(fd, "MARK INNER", "");
	close(fd);
}

/* 40,000 inlined functions in one, each with the same list of 400,000 stretches. */
static const char bomb[] =
	"__asm__(\".text\\n.globl start\\nstart: jmp 1f\\n.ascii \\\"MARK BOMB\\\"\\n1: "
	"ret\\nend:\\n"
	".section .debug_abbrev\\n"
	".uleb128 1, 0x11\\n.byte 1\\n.uleb128 0x11, 1, 0x12, 1, 0, 0\\n" /* unit: low_pc, high_pc
                                                                           */
	".uleb128 2, 0x2e\\n.byte 1\\n.uleb128 0x11, 1, 0x12, 1, 0, 0\\n" /* function: the same */
	".uleb128 3, 0x1d\\n.byte 0\\n.uleb128 0x55, 0x17, 0, 0, 0\\n"    /* inlined: ranges */
	".section .debug_info\\n"
	".long 2f - 0f\\n0: .short 4\\n.long .debug_abbrev\\n.byte 8\\n"
	".uleb128 1\\n.quad start, end\\n.uleb128 2\\n.quad start, end\\n"
	".rept 40000\\n.uleb128 3\\n.long 0\\n.endr\\n.uleb128 0, 0\\n2:\\n"
	".section .debug_ranges\\n.rept 400000\\n.quad 1, 2\\n.endr\\n.quad 0, 0\\n\");\n";

static void test_debug_information_without_an_end(void **state)
{
	int fd = build(bomb, "-no-pie -static -nostdlib -Wl,-e,start");
	struct source_lines_figures figures;
	struct found found;

	assert_int_equal(
		look_up(fd, offset_of(fd, "MARK BOMB"), NULL, reader_main, &found, &figures), 0);
	assert_int_equal(figures.given_up, 1);
	assert_int_equal(figures.unanswered, 1);
	assert_string_equal(found.text, "");
	close(fd);
}

/* Damage is not told from what is meant: but it ends, and what comes is an answer. */
static void test_damaged_debug_information(void **state)
{
	static unsigned char bytes[1 << 20];
	int fd = build(program, TARGET " -g");
	uint64_t inner = offset_of(fd, "MARK INNER");
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);
	struct source_lines_figures figures;
	unsigned seed = 1;
	struct found found;

	for (int round = 0; round < 40; round++) {
		for (ssize_t at = 4096 * 3; at < len - 2000; at += 1 + (rand_r(&seed) & 255)) {
			unsigned char byte = (unsigned char)rand_r(&seed);

			put(fd, &byte, 1, (uint64_t)at);
		}
		assert_int_equal(look_up(fd, inner, NULL, reader_main, &found, &figures), 0);
		assert_int_equal(figures.places, 1);
		put(fd, bytes, (size_t)len, 0);
	}
	close(fd);
}

/* ---- processes that are not what they should be -------------------------------------------- */

static void answer_ready(int socket)
{
	const struct lines_answer ready = { .status = LINES_OK };
	struct lines_request request;
	struct buf message = { 0 };

	while (read(socket, &request, sizeof(request)) == sizeof(request))
		if (request.what == LINES_READY) {
			lines_answer_write(&ready, &message);
			if (write(socket, message.data, message.len) < 0)
				_exit(1);
			break;
		}
}

static void hang(int socket)
{
	answer_ready(socket);
	for (;;)
		pause();
}

static void end(int socket)
{
	answer_ready(socket);
	_exit(0);
}

static void crash(int socket)
{
	kill(getpid(), SIGSEGV);
}

static void lie(int socket)
{
	struct lines_request request;

	answer_ready(socket);
	if (read(socket, &request, sizeof(request)) > 0 &&
	    write(socket, "\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\377\377\0\0\0\0\0\0main", 28) < 0)
		_exit(1);
	pause();
}

static void refuse(int socket)
{
	const struct lines_answer refused = { .status = LINES_REFUSED };
	struct lines_request request;
	struct buf message = { 0 };

	lines_answer_write(&refused, &message);
	while (read(socket, &request, sizeof(request)) == sizeof(request))
		if (request.what == LINES_READY && write(socket, message.data, message.len) < 0)
			_exit(1);
}

static void expect_given_up(void (*reader)(int socket), const char *why)
{
	int fd = build(program, TARGET " -g");
	struct source_lines *lines = source_lines_new(reader);
	struct source_lines_place place = { fd, 0, in_dir("\x1b[31ma"), NULL };
	struct source_lines_figures figures;
	struct found found[8];
	char text[512];

	if (!lines)
		SKIP("built without libdw");
	for (size_t i = 0; i < 8; i++) {
		place.offset = 4096 + i;
		source_lines_want(lines, &place, &found[i]);
	}
	assert_int_equal(source_lines_wait(lines, 8 * SECOND), 0);
	source_lines_figures(lines, &figures);
	assert_int_equal(figures.places, 8);
	assert_int_equal(figures.unanswered, 8);
	assert_int_equal(figures.given_up, 1);
	assert_true(source_lines_news(lines, text, sizeof(text)));
	assert_non_null(strstr(text, why));
	assert_null(strchr(text, '\x1b'));
	assert_false(source_lines_news(lines, text, sizeof(text)));
	source_lines_free(lines);
	close(fd);
}

static void test_processes_that_fail_are_given_up(void **state)
{
	expect_given_up(hang, "takes too long");
	expect_given_up(lie, "gives nonsense");
	expect_given_up(end, "ends the process");
	expect_given_up(crash, "ends the process");
}

static void test_a_process_that_keeps_its_rights_reads_nothing(void **state)
{
	int fd = build(program, TARGET " -g");
	struct source_lines_figures figures;
	struct found found;

	assert_int_equal(look_up(fd, 4096, NULL, refuse, &found, &figures), 0);
	assert_true(figures.rights);
	assert_string_equal(found.text, "");
	close(fd);
}

/* Two with each message: a union of cmsghdr and CMSG_SPACE(sizeof(int)) has room for both. */
static void send_descriptors(int socket)
{
	const struct lines_answer ready = { .status = LINES_OK };
	const int fds[] = { socket, socket };
	struct lines_request request;
	struct buf message = { 0 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { .head = { CMSG_LEN(sizeof(fds)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec data;
	const struct msghdr head = { .msg_iov = &data,
		                     .msg_iovlen = 1,
		                     .msg_control = &control,
		                     .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	lines_answer_write(&ready, &message);
	data = (struct iovec){ message.data, message.len };
	while (read(socket, &request, sizeof(request)) == sizeof(request))
		if (sendmsg(socket, &head, 0) < 0)
			_exit(1);
	_exit(0);
}

/* The lowest number that is free tells of all below. */
static int next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void test_descriptors_that_a_process_sends_are_not_taken(void **state)
{
	struct reader reader = { 0 };
	struct lines_answer answer;
	const bool stop = false;
	int before;

	assert_int_equal(reader_start(&reader, send_descriptors), 0);
	before = next_descriptor();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(reader_ask(&reader, LINES_READY, 0, 5000, &stop, &answer), 0);
		assert_int_equal(answer.status, LINES_OK);
	}
	assert_int_equal(next_descriptor(), before);
	reader_end(&reader);
}

static void test_nobody_waits_longer_than_he_wants(void **state)
{
	int fd = build(program, TARGET " -g");
	struct source_lines *lines = source_lines_new(hang);
	const struct source_lines_place place = { fd, 4096, "a", NULL };
	struct source_lines_figures figures;
	uint64_t begin;

	if (!lines)
		SKIP("built without libdw");
	source_lines_want(lines, &place, &figures);
	begin = (uint64_t)time(NULL);
	assert_int_equal(source_lines_wait(lines, SECOND / 10), 1);
	assert_in_range((uint64_t)time(NULL) - begin, 0, 2);
	source_lines_figures(lines, &figures);
	assert_int_equal(figures.late, 1);
	source_lines_free(lines);
	close(fd);
}

/* Ready, and 50 ms for a place, of which it finds nothing. */
static void answer_slowly(int socket)
{
	const struct lines_answer nothing = { .status = LINES_OK };
	struct lines_request request;
	struct buf message = { 0 };

	answer_ready(socket);
	lines_answer_write(&nothing, &message);
	while (read(socket, &request, sizeof(request)) == sizeof(request)) {
		usleep(50000);
		if (write(socket, message.data, message.len) < 0)
			_exit(1);
	}
}

/* Else 256 files of one take three seconds for each of their places, for as long as cuscope runs.
 */
static void test_a_user_has_a_share_of_the_time(void **state)
{
	int fd = build(program, TARGET " -g");
	struct source_lines *lines;
	struct source_lines_place place = { fd, 0, "/home/user/a", NULL };
	struct source_lines_figures figures;
	uint64_t begin_ns = clock_now_ns();
	struct found found[200];
	char text[512];

	if (geteuid())
		SKIP(NEEDS_ROOT);
	assert_int_equal(fchown(fd, 4711, 4711), 0);
	lines = source_lines_new(answer_slowly);
	if (!lines)
		SKIP("built without libdw");
	lines->person_ns = SECOND / 2;
	for (size_t i = 0; i < ARRAY_SIZE(found); i++) {
		place.offset = 4096 + i;
		source_lines_want(lines, &place, &found[i]);
	}
	assert_true(source_lines_wait(lines, 8 * SECOND) > 100);
	source_lines_figures(lines, &figures);
	assert_true(figures.ns < 2 * SECOND);
	assert_true(figures.late > 100);
	assert_true(clock_now_ns() - begin_ns < 4 * SECOND); /* nobody waits for it */
	assert_true(source_lines_news(lines, text, sizeof(text)));
	assert_non_null(strstr(text, "a and other files of its user: reading their debug"));
	assert_false(source_lines_news(lines, text, sizeof(text)));
	source_lines_free(lines);
	close(fd);
}

/* What one file's places take is bounded, and what is beyond is counted. */
static void test_places_beyond_what_is_kept_are_counted(void **state)
{
	enum { MANY = 400000 };
	int fd = build(program, TARGET " -g");
	struct source_lines *lines = source_lines_new(hang);
	struct source_lines_place place = { fd, 0, "a", NULL };
	struct source_lines_figures figures;

	if (!lines)
		SKIP("built without libdw");
	for (uintptr_t i = 1; i <= MANY; i++) {
		place.offset = i;
		source_lines_want(lines, &place, (void *)i);
		source_lines_want(lines, &place, (void *)i); /* is there already, or has no room */
	}
	source_lines_wait(lines, 0);
	source_lines_figures(lines, &figures);
	assert_in_range(figures.places, 100000, (24 << 20) / 64);
	assert_int_equal(figures.refused, 2 * (MANY - figures.places));
	/* Where all this took longer than a file may hang, it was given up. */
	assert_int_equal(figures.late + figures.unanswered, figures.places);
	source_lines_free(lines);
	close(fd);
}

static void note_any(void *data, void *what, const struct lines_part *parts, size_t n)
{
	*(const void **)data = what;
	assert_string_equal(parts[0].function, "inner");
}

/* Who makes a file that says it is a library of root's shall not tell its lines to others. */
static void test_a_file_of_roots_tells_instead_of_another(void **state)
{
	int theirs = build(program, TARGET), roots, what;
	struct source_lines *lines = source_lines_new(reader_main);
	struct source_lines_place place = { theirs, 4096, "a", NULL };
	struct source_lines_figures figures;
	const void *told = NULL;

	if (!lines || geteuid())
		SKIP("it needs root, and libdw");
	assert_int_equal(fchown(theirs, 1000, 1000), 0);
	source_lines_want(lines, &place, &what);
	run("rm a.out");
	roots = build(program, TARGET " -g");
	assert_int_equal(fchmod(roots, 0755), 0);
	place = (struct source_lines_place){ roots, offset_of(roots, "MARK INNER"), "a", NULL };
	source_lines_want(lines, &place, &what);
	place = (struct source_lines_place){ theirs, 4096, "a", NULL };
	source_lines_want(lines, &place, &what);
	assert_int_equal(source_lines_wait(lines, 8 * SECOND), 0);
	source_lines_figures(lines, &figures);
	assert_int_equal(figures.places, 2);
	source_lines_each(lines, note_any, &told);
	assert_ptr_equal(told, &what);
	source_lines_free(lines);
	close(theirs);
	close(roots);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void test_answers_come_back_as_they_were(void **state)
{
	struct lines_answer answer = { .status = LINES_OK, .n = 2 }, back;
	struct buf message = { 0 }, texts = { 0 };

	answer.parts[0] = (struct lines_part){ "in\nner", "a.c", 7, 5 };
	answer.parts[1] = (struct lines_part){ NULL, NULL, 0, 0 };
	lines_answer_write(&answer, &message);
	assert_true(lines_answer_read(message.data, message.len, &back, &texts));
	assert_int_equal(back.n, 2);
	assert_string_equal(back.parts[0].function, "in?ner");
	assert_string_equal(back.parts[0].file, "a.c");
	assert_int_equal(back.parts[0].line, 7);
	assert_int_equal(back.parts[0].first_line, 5);
	assert_null(back.parts[1].function);
	for (size_t len = 0; len < message.len; len++)
		assert_false(lines_answer_read(message.data, len, &back, &texts));
	message.data[8] = message.data[11] = '\xff'; /* the line */
	assert_false(lines_answer_read(message.data, message.len, &back, &texts));
	buf_free(&message);
	buf_free(&texts);
}

static void test_answers_with_controls_are_none(void **state)
{
	struct lines_answer answer = { .status = LINES_OK, .n = 1 }, back;
	struct buf message = { 0 }, texts = { 0 };

	answer.parts[0] = (struct lines_part){ "inner", "a.c", 7, 5 };
	for (int at = 1; at <= 8; at++) {
		for (const char *bad = "\x1b\n\x7f"; *bad; bad++) {
			lines_answer_write(&answer, &message);
			message.data[message.len - (size_t)at] = *bad;
			assert_false(lines_answer_read(message.data, message.len, &back, &texts));
		}
		message.data[message.len - (size_t)at] = '\0';
		assert_false(lines_answer_read(message.data, message.len, &back, &texts));
	}
	buf_free(&message);
	buf_free(&texts);
}

static void test_names_that_do_not_fit_are_left_out(void **state)
{
	static char name[LINES_NAME_MAX + 2], longest[LINES_NAME_MAX + 1];
	static struct lines_answer answer, back;
	struct buf message = { 0 }, texts = { 0 };

	memset(name, 'x', LINES_NAME_MAX + 1);
	memset(longest, 'y', LINES_NAME_MAX);
	answer.n = LINES_PARTS_MAX;
	for (size_t i = 0; i < answer.n; i++)
		answer.parts[i] = (struct lines_part){ i ? longest : name, "a.c", 1, 1 };
	lines_answer_write(&answer, &message);
	assert_in_range(message.len, 1, LINES_ANSWER_BYTES);
	assert_true(lines_answer_read(message.data, message.len, &back, &texts));
	assert_null(back.parts[0].function);
	assert_string_equal(back.parts[1].function, longest);
	buf_free(&message);
	buf_free(&texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined_functions_and_their_lines),
		cmocka_unit_test(test_names_of_inlined_functions_have_their_scopes),
		cmocka_unit_test(test_a_file_without_debug_information_is_not_read),
		cmocka_unit_test(test_names_in_the_compressed_section),
		cmocka_unit_test(test_of_a_function_that_is_known_the_lines_are_told),
		cmocka_unit_test(test_a_stripped_file_tells_nothing),
		cmocka_unit_test(test_debug_information_without_an_end),
		cmocka_unit_test(test_damaged_debug_information),
		cmocka_unit_test(test_processes_that_fail_are_given_up),
		cmocka_unit_test(test_a_process_that_keeps_its_rights_reads_nothing),
		cmocka_unit_test(test_descriptors_that_a_process_sends_are_not_taken),
		cmocka_unit_test(test_nobody_waits_longer_than_he_wants),
		cmocka_unit_test(test_a_user_has_a_share_of_the_time),
		cmocka_unit_test(test_places_beyond_what_is_kept_are_counted),
		cmocka_unit_test(test_a_file_of_roots_tells_instead_of_another),
		cmocka_unit_test(test_answers_come_back_as_they_were),
		cmocka_unit_test(test_answers_with_controls_are_none),
		cmocka_unit_test(test_names_that_do_not_fit_are_left_out),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
