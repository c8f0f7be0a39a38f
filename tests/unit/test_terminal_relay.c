// SPDX-License-Identifier: MIT
/* The process between two terminals, with a pipe in our terminal's place. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/own_terminal.h"
#include "unit.h"

#define BYTES   400000u /* more than a pipe holds */
#define WAIT_MS 20000

struct scene {
	int out; /* where what is shown arrives */
	int slave, control;
	pid_t relay;
};

/* `flags` are of the writing end of what stands for our terminal. */
static void begin(struct scene *scene, int flags)
{
	int ends[2], pair[2], master = posix_openpt(O_RDWR | O_NOCTTY);
	pid_t said = 0;

	if (master < 0 || access("/dev/pts/ptmx", F_OK)) /* as in a chroot without devpts */
		SKIP("no /dev/pts here");
	assert_true(grantpt(master) == 0 && unlockpt(master) == 0);
	scene->slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(scene->slave >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_WRONLY | flags), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	scene->relay = fork();
	if (!scene->relay)
		relay_run(&(struct relay){ .in = -1,
		                           .out = ends[1],
		                           .master = master,
		                           .slave = scene->slave,
		                           .control = pair[1],
		                           .owner = getppid() });
	assert_true(scene->relay > 0);
	close(ends[1]);
	close(pair[1]);
	close(master);
	scene->out = ends[0];
	scene->control = pair[0];
	assert_int_equal(read(scene->control, &said, sizeof(said)), sizeof(said));
	assert_int_equal(said, scene->relay);
}

static pid_t start_writer(const struct scene *scene)
{
	char letters[1000];
	pid_t writer = fork();

	if (writer)
		return writer;
	close(scene->out);
	memset(letters, 'x', sizeof(letters));
	for (size_t n = 0; n < BYTES; n += sizeof(letters))
		if (write(scene->slave, letters, sizeof(letters)) != sizeof(letters))
			_exit(1);
	_exit(0);
}

/* Until `most` have come, or none for WAIT_MS. */
static size_t read_slowly(const struct scene *scene, size_t most)
{
	struct pollfd more = { .fd = scene->out, .events = POLLIN };
	char bytes[8192];
	size_t count = 0;

	usleep(200000); /* it is full by now */
	while (count < most && poll(&more, 1, WAIT_MS) == 1) {
		ssize_t n = read(scene->out, bytes, sizeof(bytes));

		if (n <= 0)
			break;
		count += (size_t)n;
		usleep(1000);
	}
	return count;
}

static void end(struct scene *scene)
{
	char byte;
	int status;

	assert_int_equal(write(scene->control, "e", 1), 1);
	assert_int_equal(read(scene->control, &byte, 1), 1);
	close(scene->slave);
	assert_int_equal(waitpid(scene->relay, &status, 0), scene->relay);
	assert_int_equal(status, 0);
	close(scene->control);
}

static void assert_all_is_shown(int flags)
{
	struct scene scene;
	pid_t writer;
	int status;

	begin(&scene, flags);
	writer = start_writer(&scene);
	assert_true(writer > 0);
	assert_int_equal(read_slowly(&scene, BYTES), BYTES);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	end(&scene);
	close(scene.out);
}

static void test_what_is_written_is_shown_to_a_slow_reader(void **state)
{
	assert_all_is_shown(0);
}

static void test_nor_is_a_byte_lost_where_somebody_set_o_nonblock(void **state)
{
	assert_all_is_shown(O_NONBLOCK);
}

/* Nobody reads any more: what is written is dropped, and the command does not wait. */
static void test_what_nobody_reads_keeps_nobody(void **state)
{
	struct scene scene;
	pid_t writer;
	int status;

	begin(&scene, O_NONBLOCK);
	writer = start_writer(&scene);
	assert_true(writer > 0);
	usleep(200000);
	close(scene.out);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_shown_to_a_slow_reader),
		cmocka_unit_test(test_nor_is_a_byte_lost_where_somebody_set_o_nonblock),
		cmocka_unit_test(test_what_nobody_reads_keeps_nobody),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
