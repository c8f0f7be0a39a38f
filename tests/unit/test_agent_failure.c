// SPDX-License-Identifier: MIT
/* Each way in which an agent can fail is a sentence that says what to do. */
#include "agent/agent_failure.h"

#include "base/array.h"
#include "unit.h"

static void assert_says(const struct agent_shared *shared, const char *wanted)
{
	struct buf text = { 0 };

	agent_failure_text(&text, 123, shared);
	assert_string_equal(text.data, wanted);
	buf_free(&text);
}

static void test_another_profiler_is_named(void **state)
{
	assert_says(&(struct agent_shared){ .failure = AGENT_CUPTI_BUSY },
	            "another profiler (nsys, torch.profiler) is using CUPTI in process 123, and "
	            "until CUDA 13.3 CUPTI serves one at a time: end that profiler "
	            "(torch.profiler gives CUPTI back only with TEARDOWN_CUPTI=1 in the "
	            "environment), or go on without GPU times");
}

static void test_who_has_cupti_is_named_as_far_as_known(void **state)
{
	assert_says(
		&(struct agent_shared){ .failure = AGENT_CUPTI_BUSY,
	                                .cupti_version = 130300,
	                                .text = "CUPTI for \033tool" },
		"another profiler (CUPTI for \\x1btool) is using CUPTI in process 123, and lets "
		"no other profiler in: end that profiler (torch.profiler gives CUPTI back only "
		"with TEARDOWN_CUPTI=1 in the environment), or go on without GPU times");
	assert_says(&(struct agent_shared){ .failure = AGENT_CUPTI_BUSY,
	                                    .text = "perhaps XLA or torch.profiler" },
	            "another profiler (perhaps XLA or torch.profiler) is using CUPTI in process "
	            "123, and until CUDA 13.3 CUPTI serves one at a time: end that profiler "
	            "(torch.profiler gives CUPTI back only with TEARDOWN_CUPTI=1 in the "
	            "environment), or go on without GPU times");
}

static void test_what_was_tried_and_what_to_install_is_named(void **state)
{
	assert_says(&(struct agent_shared){ .failure = AGENT_NO_CUPTI,
	                                    .driver_version = 12080,
	                                    .text = "libcupti.so.12" },
	            "no libcupti was found for process 123 (tried libcupti.so.12): install the "
	            "CUDA toolkit's CUPTI, `pip install nvidia-cuda-cupti-cu12`, or name one by "
	            "--cupti PATH");
}

static void test_the_wheel_is_that_of_the_driver(void **state)
{
	static const struct {
		uint32_t driver;
		const char *wheel;
	} wheels[] = {
		{ 0, "cupti-cu12`" },
		{ 11080, "cupti-cu11`" },
		{ 12000, "cupti-cu12`" },
		{ 13000, "cuda-cupti`" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wheels); i++) {
		struct buf text = { 0 };

		agent_failure_text(&text, 123,
		                   &(struct agent_shared){ .failure = AGENT_NO_CUPTI,
		                                           .driver_version = wheels[i].driver });
		assert_non_null(strstr(text.data, wheels[i].wheel));
		buf_free(&text);
	}
}

static void test_a_library_that_does_not_fit_is_named(void **state)
{
	assert_says(&(struct agent_shared){ .failure = AGENT_CUPTI_FOREIGN,
	                                    .driver_version = 13000,
	                                    .text = "CUPTI of CUDA 11.2",
	                                    .cupti_path = "/opt/libcupti.so" },
	            "the libcupti of process 123, /opt/libcupti.so, does not fit its driver or is "
	            "too old (CUPTI of CUDA 11.2): it has to be of CUDA 12 or 13: `pip install "
	            "nvidia-cuda-cupti`, or name another one by --cupti PATH");
}

static void test_what_cupti_said_comes_with_advice(void **state)
{
	assert_says(&(struct agent_shared){ .failure = AGENT_CUPTI_ERROR,
	                                    .code = 35,
	                                    .text = "cuptiSubscribe" },
	            "CUPTI does not work in process 123: cuptiSubscribe gave error 35: the driver "
	            "lets only root profile: run the program as root, or load the nvidia module "
	            "with NVreg_RestrictProfilingToAdminUsers=0");
	assert_says(&(struct agent_shared){ .failure = AGENT_CUPTI_ERROR, .code = 999 },
	            "CUPTI does not work in process 123: error 999");
}

static void test_texts_of_the_target_cannot_reach_the_terminal(void **state)
{
	assert_says(&(struct agent_shared){ .failure = AGENT_NO_CUDA, .text = "\033[2J\xff" },
	            "CUDA does not work in process 123 (\\x1b[2J\\xff): GPU times need its "
	            "libcuda.so.1 and a GPU");
}

static void test_every_failure_has_a_sentence(void **state)
{
	for (uint32_t failure = AGENT_FINE; failure <= AGENT_BAD_HELLO + 1; failure++) {
		struct buf text = { 0 };

		agent_failure_text(&text, 123, &(struct agent_shared){ .failure = failure });
		assert_true(text.len > 40);
		assert_non_null(strstr(text.data, "process 123"));
		assert_true((failure > AGENT_FINE && failure <= AGENT_BAD_HELLO) ==
		            !strstr(text.data, "did not say why"));
		buf_free(&text);
	}
}

static void assert_notes(enum agent_state state, const struct agent_shared *shared,
                         const char *wanted)
{
	struct buf text = { 0 };

	agent_note_text(&text, 123, state, shared);
	assert_string_equal(text.data ? text.data : "", wanted);
	buf_free(&text);
}

static void test_what_stays_in_the_process_is_told_at_the_end(void **state)
{
	const struct agent_shared stays = { .leftover = AGENT_LEFT_CUPTI };

	assert_notes(AGENT_OFF, &stays,
	             "CUPTI stays in process 123, because it used CUDA graphs while it was "
	             "measured: until it ends, each launch takes about 0.3 us more and each graph "
	             "launch 0.9 us (on an H200)");
	assert_notes(AGENT_OFF,
	             &(struct agent_shared){ .leftover = AGENT_LEFT_CUPTI, .cupti_version = 22 },
	             "CUPTI stays in process 123, because a CUPTI older than that of CUDA 12.6 "
	             "cannot be left safely: some of its cost stays until the process ends");
	assert_notes(AGENT_OFF, &(struct agent_shared){ .leftover = AGENT_LEFT_SHARED },
	             "CUPTI stays in process 123, because other profilers may use it: some of its "
	             "cost may stay until the process ends");
	assert_notes(AGENT_PAUSED, &stays, "");
	assert_notes(AGENT_OFF, &(struct agent_shared){ 0 }, "");
}

static void test_nodes_instead_of_graphs_are_told_when_it_begins(void **state)
{
	const struct agent_shared nodes = { .nodes_instead = 1 };

	assert_notes(AGENT_RUNNING, &nodes,
	             "graph launches of process 123 are measured node by node: measuring them as "
	             "wholes works only if cuscope starts the program and measures all the time");
	assert_notes(AGENT_OFF, &nodes, "");
	assert_notes(AGENT_RUNNING, &(struct agent_shared){ 0 }, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_profiler_is_named),
		cmocka_unit_test(test_who_has_cupti_is_named_as_far_as_known),
		cmocka_unit_test(test_what_was_tried_and_what_to_install_is_named),
		cmocka_unit_test(test_the_wheel_is_that_of_the_driver),
		cmocka_unit_test(test_a_library_that_does_not_fit_is_named),
		cmocka_unit_test(test_what_cupti_said_comes_with_advice),
		cmocka_unit_test(test_texts_of_the_target_cannot_reach_the_terminal),
		cmocka_unit_test(test_what_stays_in_the_process_is_told_at_the_end),
		cmocka_unit_test(test_nodes_instead_of_graphs_are_told_when_it_begins),
		cmocka_unit_test(test_every_failure_has_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
