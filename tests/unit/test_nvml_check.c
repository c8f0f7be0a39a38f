// SPDX-License-Identifier: MIT
// What a process that calls NVML may say, and what is made of what cannot be.
#include "gpus/nvml_process.h"

#include "support.h"

#define NOW 1000

static struct nvml_message message;

static bool check(enum nvml_wanted wanted)
{
	return nvml_check(&message, nvml_message_bytes(message.head.kind), wanted, NOW);
}

static struct gpu_state *good_state(void)
{
	memset(&message, 0, sizeof(message));
	message.head = (struct nvml_message_head){ NVML_WIRE_MAGIC, NVML_MESSAGE_STATE };
	gpu_state_unknown(&message.state, 3);
	message.state.answer = GPU_ANSWER_GOOD;
	message.state.read_ns = NOW;
	return &message.state;
}

static struct gpus_sample *good_gpus(void)
{
	memset(&message, 0, sizeof(message));
	message.head = (struct nvml_message_head){ NVML_WIRE_MAGIC, NVML_MESSAGE_GPUS };
	message.gpus.n = 1;
	message.gpus.gpus[0] = gpu_unknown;
	return &message.gpus;
}

static struct nvml_sample *good_sample(void)
{
	memset(&message, 0, sizeof(message));
	message.head = (struct nvml_message_head){ NVML_WIRE_MAGIC, NVML_MESSAGE_SAMPLE };
	message.sample.any = 1;
	message.sample.sample.source = GPU_METRICS_GPM;
	return &message.sample;
}

static void test_a_message_has_its_length_and_was_asked_for(void **state)
{
	(void)state;
	good_state();
	assert_true(check(NVML_WANTED_STATES));
	assert_false(check(NVML_WANTED_GPUS));
	for (size_t bytes = 0; bytes < sizeof(message) + 9; bytes += 7)
		assert_int_equal(nvml_check(&message, bytes, NVML_WANTED_STATES, NOW),
		                 bytes == nvml_message_bytes(NVML_MESSAGE_STATE));
	message.head.magic++;
	assert_false(check(NVML_WANTED_STATES));
	good_state();
	message.head.kind = NVML_MESSAGE_KINDS;
	assert_false(nvml_check(&message, 0, NVML_WANTED_STATES, NOW));
	assert_false(check(NVML_WANTED_STATES));
}

#define REFUSED(make, change)                                                                      \
	do {                                                                                       \
		make->change;                                                                      \
		assert_false(check(wanted));                                                       \
	} while (0)

static void test_states_that_cannot_be_are_refused(void **state)
{
	enum nvml_wanted wanted = NVML_WANTED_STATES;

	(void)state;
	REFUSED(good_state(), index = GPUS_MAX);
	REFUSED(good_state(), answer = GPU_ANSWER_FAILED + 1);
	REFUSED(good_state(), read_ns = NOW + 1);
	REFUSED(good_state(), n_mig = GPU_STATE_MIG_MAX + 1);
	REFUSED(good_state(), n_processes = GPU_STATE_PROCESSES_MAX + 1);
	REFUSED(good_state(), xids.n_codes = GPU_STATE_XIDS_MAX + 1);
	REFUSED(good_state(), xids.total = 5); /* of no code */
	REFUSED(good_state(), metrics.source = GPU_METRICS_SOURCES);
	good_state()->n_processes = 1;
	message.state.processes[0].mig = 0;
	assert_false(check(wanted));
	memset(good_state()->model, 'x', sizeof(message.state.model));
	assert_false(check(wanted));
	memset(&good_state()->mig_mode, 2, 1);
	assert_false(check(wanted));
}

static void test_numbers_out_of_bounds_are_not_known(void **state)
{
	(void)state;
	good_state()->value[GPU_VALUE_BUSY_PERCENT] = 101;
	message.state.value[GPU_VALUE_POWER_MW] = -7;
	message.state.metrics.value[GPU_METRIC_SM] = 55; /* of no source */
	memcpy(message.state.model, "a\nb\033", 5);
	assert_true(check(NVML_WANTED_STATES));
	assert_int_equal(message.state.value[GPU_VALUE_BUSY_PERCENT], GPU_UNKNOWN);
	assert_int_equal(message.state.value[GPU_VALUE_POWER_MW], GPU_UNKNOWN);
	assert_int_equal(message.state.metrics.value[GPU_METRIC_SM], GPU_UNKNOWN);
	assert_string_equal(message.state.model, "a?b?");
	good_gpus()->gpus[0].busy_percent = 1000;
	message.gpus.gpus[0].temperature_c = -40;
	assert_true(check(NVML_WANTED_GPUS));
	assert_int_equal(message.gpus.gpus[0].busy_percent, GPU_UNKNOWN);
	assert_int_equal(message.gpus.gpus[0].temperature_c, GPU_UNKNOWN);
	good_sample()->sample.value[GPU_METRIC_TENSOR] = 10001;
	message.sample.sample.value[GPU_METRIC_PCIE_TX] = GPU_RATE_MOST + 1;
	assert_true(check(NVML_WANTED_SAMPLES));
	assert_int_equal(message.sample.sample.value[GPU_METRIC_TENSOR], GPU_UNKNOWN);
	assert_int_equal(message.sample.sample.value[GPU_METRIC_PCIE_TX], GPU_UNKNOWN);
}

static void test_samples_and_gpus_that_cannot_be_are_refused(void **state)
{
	enum nvml_wanted wanted = NVML_WANTED_SAMPLES;

	(void)state;
	REFUSED(good_sample(), index = GPUS_MAX);
	REFUSED(good_sample(), any = 2);
	REFUSED(good_sample(), sample.gpu = 1);
	REFUSED(good_sample(), sample.end_ns = NOW + 1);
	REFUSED(good_sample(), sample.begin_ns = 1);
	REFUSED(good_sample(), late = UINT64_MAX);
	wanted = NVML_WANTED_GPUS;
	REFUSED(good_gpus(), n = GPUS_MAX + 1);
	REFUSED(good_gpus(), n_processes = GPU_PROCESSES_MAX + 1);
	memset(good_gpus()->why, 'x', sizeof(message.gpus.why));
	assert_false(check(wanted));
}

static struct nvml_stretches *good_stretches(void)
{
	memset(&message, 0, sizeof(message));
	message.head = (struct nvml_message_head){ NVML_WIRE_MAGIC, NVML_MESSAGE_STRETCHES };
	message.stretches.n = 2;
	message.stretches.of[0] = (struct gpu_stretch){ 100, 200, 0, 0, 0, 0, 0 };
	message.stretches.of[1] =
		(struct gpu_stretch){ 200, NOW, GPU_SHARE_WHOLE, 0, 12000, -7, 500 };
	return &message.stretches;
}

static void test_stretches_follow_each_other_and_are_over(void **state)
{
	enum nvml_wanted wanted = NVML_WANTED_STRETCHES;

	(void)state;
	good_stretches();
	assert_true(check(wanted));
	assert_int_equal(message.stretches.of[1].sm, GPU_METRIC_UNKNOWN);
	assert_int_equal(message.stretches.of[1].tensor, GPU_METRIC_UNKNOWN);
	assert_int_equal(message.stretches.of[1].dram, 500);
	assert_false(check(NVML_WANTED_SAMPLES));
	REFUSED(good_stretches(), index = GPUS_MAX);
	REFUSED(good_stretches(), n = NVML_STRETCHES + 1);
	REFUSED(good_stretches(), samples = UINT64_MAX);
	REFUSED(good_stretches(), clock_error_ns = UINT64_MAX);
	REFUSED(good_stretches(), of[1].begin_ns = 199);
	REFUSED(good_stretches(), of[1].end_ns = NOW + 1);
	REFUSED(good_stretches(), of[0].end_ns = 100);
	REFUSED(good_stretches(), of[0].busy = GPU_SHARE_WHOLE + 1);
	REFUSED(good_stretches(), of[0].copies = -1);
}

static void test_bytes_of_any_kind_are_read(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		unsigned char *bytes = (unsigned char *)&message;

		for (size_t at = 0; at < sizeof(message); at++)
			bytes[at] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16);
		message.head = (struct nvml_message_head){ NVML_WIRE_MAGIC,
			                                   (uint32_t)i % NVML_MESSAGE_KINDS };
		check((enum nvml_wanted)(i % NVML_WANTED_END));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_message_has_its_length_and_was_asked_for),
		cmocka_unit_test(test_states_that_cannot_be_are_refused),
		cmocka_unit_test(test_numbers_out_of_bounds_are_not_known),
		cmocka_unit_test(test_samples_and_gpus_that_cannot_be_are_refused),
		cmocka_unit_test(test_stretches_follow_each_other_and_are_over),
		cmocka_unit_test(test_bytes_of_any_kind_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
