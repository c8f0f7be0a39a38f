// SPDX-License-Identifier: MIT
/* Texts that calls pass, where a process has to be asked for them. */
#include "unit.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/call_texts.h"
#include "probe/account.h"
#include "probe/helper.h"

static uint64_t person;
static size_t asked;

uint64_t __wrap_helper_person_of(pid_t pid);
uint64_t __wrap_helper_person_of(pid_t pid)
{
	return person;
}

/* In the time that it takes on a busy machine. */
bool __wrap_helper_string(pid_t pid, uint64_t address, char *to, size_t size);
bool __wrap_helper_string(pid_t pid, uint64_t address, char *to, size_t size)
{
	asked++;
	usleep(1000);
	return true;
}

static size_t asked_of(uint32_t pid, uint64_t whose, size_t n)
{
	char text[8];

	person = whose;
	asked = 0;
	for (size_t i = 0; i < n; i++)
		call_text_read(pid, 0x1000, text, sizeof(text));
	return asked;
}

static void test_a_user_has_a_second_and_a_part_of_the_time(void **state)
{
	assert_in_range(asked_of((uint32_t)getpid(), 1001, 2000), 1, 1500);
	assert_int_equal(asked_of((uint32_t)getpid(), 1001, 10), 0);
	assert_int_equal(asked_of((uint32_t)getpid(), 1002, 10), 10);
}

static void test_nobody_is_asked_for_who_is_gone(void **state)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(asked_of((uint32_t)pid, 1003, 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_has_a_second_and_a_part_of_the_time),
		cmocka_unit_test(test_nobody_is_asked_for_who_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
