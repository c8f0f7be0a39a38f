// SPDX-License-Identifier: MIT
// What is read of GPUs, with a simulated NVML: values, those that are not there, and GPUs that
// hang.
#include "gpus/gpu_state.h"

#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include "simnvml.h"

#define TICK_NS    100000000ull
#define PATIENCE_S 8

static struct gpu_state now[GPUS_MAX];

/* Reads until `wanted` is true of GPU `index`. */
static bool wait_for(struct gpu_states *states, uint32_t index,
                     bool (*wanted)(const struct gpu_state *gpu))
{
	for (int i = 0; i < PATIENCE_S * 50; i++) {
		size_t n = gpu_states_read(states, now, GPUS_MAX, simnvml_now());

		if (index < n && wanted(&now[index]))
			return true;
		usleep(20000);
	}
	return false;
}

static bool was_read(const struct gpu_state *gpu)
{
	return gpu->answer == GPU_ANSWER_GOOD;
}

static bool has_metrics(const struct gpu_state *gpu)
{
	return gpu->metrics.source != GPU_METRICS_NONE;
}

static bool is_late(const struct gpu_state *gpu)
{
	return gpu->answer == GPU_ANSWER_LATE;
}

static bool is_lost(const struct gpu_state *gpu)
{
	return gpu->answer == GPU_ANSWER_LOST;
}

static uint64_t xids_wanted;

static bool has_xids(const struct gpu_state *gpu)
{
	return gpu->xids.total >= xids_wanted;
}

/* What the environment says is taken when it starts. */
static struct gpu_states *start_with_pid(const char *gpus, const char *settings, const char *pid)
{
	struct gpu_states *states;

	setenv("SIMNVML_GPUS", gpus, 1);
	unsetenv("SIMNVML_FAIL");
	if (pid)
		setenv("SIMNVML_PID", pid, 1);
	else
		unsetenv("SIMNVML_PID");
	simnvml_set(settings);
	states = gpu_states_new(TICK_NS);
	assert_non_null(states);
	return states;
}

static struct gpu_states *start(const char *gpus, const char *settings)
{
	return start_with_pid(gpus, settings, NULL);
}

static void test_values_of_each_gpu_are_read(void **state)
{
	struct gpu_states *states = start("2", "gpu1.throttle 72\n");
	char text[128];
	uint64_t reasons;

	(void)state;
	assert_true(wait_for(states, 1, was_read));
	assert_string_equal(now[1].model, "NVIDIA Simulated 1");
	assert_string_equal(now[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
	assert_string_equal(now[1].bus, "00000000:19:00.0");
	assert_int_equal(now[1].value[GPU_VALUE_BUSY_PERCENT], 11);
	assert_int_equal(now[1].value[GPU_VALUE_MEMORY_FREE_BYTES], 59ll << 30);
	assert_int_equal(now[1].value[GPU_VALUE_POWER_MW], 301000);
	assert_int_equal(now[1].value[GPU_VALUE_ENERGY_MJ], 123456789);
	assert_int_equal(now[1].value[GPU_VALUE_SM_CLOCK_HZ], 1755000000);
	assert_int_equal(now[1].value[GPU_VALUE_MEMORY_CLOCK_HZ], 3201000000);
	assert_int_equal(now[1].value[GPU_VALUE_ECC_UNCORRECTED], 4);
	assert_int_equal(now[1].value[GPU_VALUE_REMAPPED_ROWS_FAILED], 145);
	assert_int_equal(now[1].value[GPU_VALUE_NVLINK_TX_BYTES], 138 * 1024);
	assert_int_equal(now[1].value[GPU_VALUE_PCIE_TX_BYTES], 197);
	reasons = (uint64_t)now[1].value[GPU_VALUE_THROTTLE_REASONS];
	assert_string_equal(gpu_throttle_name(&reasons), "hw_slowdown");
	assert_string_equal(gpu_throttle_name(&reasons), "hw_thermal_slowdown");
	assert_null(gpu_throttle_name(&reasons));
	gpu_states_driver(states, text, sizeof(text));
	assert_string_equal(text, "580.159.04");
	gpu_states_why(states, text, sizeof(text));
	assert_string_equal(text, "");
	gpu_states_free(states);
}

static void test_what_a_driver_does_not_tell_is_unknown(void **state)
{
	struct gpu_states *states =
		start("1", "fail.power 3\nfail.field.143 3\nfail.field.4 3\nfail.ecc 3\n"
	                   "fail.events 3\nfail.energy 999\nfail.gpm.5 3\n");

	(void)state;
	assert_true(wait_for(states, 0, has_metrics));
	assert_int_equal(now[0].answer, GPU_ANSWER_GOOD);
	assert_int_equal(now[0].value[GPU_VALUE_POWER_MW], GPU_UNKNOWN);
	assert_int_equal(now[0].value[GPU_VALUE_ENERGY_MJ], GPU_UNKNOWN);
	assert_int_equal(now[0].value[GPU_VALUE_ECC_CORRECTED], 3);
	assert_int_equal(now[0].value[GPU_VALUE_ECC_UNCORRECTED], GPU_UNKNOWN);
	assert_int_equal(now[0].value[GPU_VALUE_REMAPPED_ROWS_UNCORRECTED], GPU_UNKNOWN);
	assert_false(now[0].xids_told);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_TENSOR], GPU_UNKNOWN);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_SM], 8000);
	gpu_states_free(states);
}

static void test_a_total_of_bytes_in_32_bits_is_not_told(void **state)
{
	struct gpu_states *states = start("1", "field.type 1\n");

	(void)state;
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].value[GPU_VALUE_PCIE_TX_BYTES], GPU_UNKNOWN);
	assert_int_equal(now[0].value[GPU_VALUE_PCIE_REPLAYS], 94);
	gpu_states_free(states);
}

static void test_metrics_are_means_without_the_first_pair(void **state)
{
	struct gpu_states *states = start("1", "gpm.5 93.46\n");

	(void)state;
	assert_true(wait_for(states, 0, has_metrics));
	assert_int_equal(now[0].metrics.source, GPU_METRICS_GPM);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_TENSOR], 9346);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_GRAPHICS], 9000);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_PCIE_TX], 120ll << 20);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_NVLINK_RX], 1060ll << 20);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_BUSY], GPU_UNKNOWN);
	assert_in_range(now[0].metrics.end_ns - now[0].metrics.begin_ns, TICK_NS / 2, 5 * TICK_NS);
	gpu_states_free(states);
}

static void test_a_gpu_without_gpm_has_its_utilisation(void **state)
{
	struct gpu_states *states = start("1", "gpm 0\n");

	(void)state;
	assert_true(wait_for(states, 0, has_metrics));
	assert_int_equal(now[0].metrics.source, GPU_METRICS_UTILIZATION);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_BUSY], 1000);
	assert_int_equal(now[0].metrics.value[GPU_METRIC_SM], GPU_UNKNOWN);
	gpu_states_free(states);
}

static void test_a_gpu_that_hangs_keeps_its_last_values_and_holds_up_no_other(void **state)
{
	struct gpu_states *states = start("2", "");
	uint64_t begin_ns, reads;

	(void)state;
	assert_true(wait_for(states, 0, was_read) && wait_for(states, 1, was_read));
	simnvml_set("gpu0.hang 1\n");
	assert_true(wait_for(states, 0, is_late));
	assert_int_equal(now[0].value[GPU_VALUE_POWER_MW], 300000);
	assert_true(now[0].age_ns > GPU_LATE_NS);
	assert_int_equal(now[1].answer, GPU_ANSWER_GOOD);
	assert_true(now[1].age_ns < GPU_LATE_NS);
	reads = now[0].reads;
	simnvml_set("");
	assert_true(wait_for(states, 0, was_read));
	usleep(300000);
	assert_true(wait_for(states, 0, was_read));
	assert_true(now[0].reads > reads);
	simnvml_set("gpu0.hang 1\n");
	usleep(200000);
	begin_ns = simnvml_now();
	gpu_states_free(states);
	assert_in_range(simnvml_now() - begin_ns, 0, 2000000000);
	simnvml_set("");
}

static void test_a_gpu_that_is_lost_says_so_and_may_come_back(void **state)
{
	struct gpu_states *states = start("1", "");

	(void)state;
	assert_true(wait_for(states, 0, was_read));
	simnvml_set("lost 1\n");
	assert_true(wait_for(states, 0, is_lost));
	assert_string_equal(now[0].why, "GPU is lost");
	assert_int_equal(now[0].value[GPU_VALUE_BUSY_PERCENT], 10);
	assert_true(now[0].failures > 0);
	simnvml_set("");
	assert_true(wait_for(states, 0, was_read));
	gpu_states_free(states);
}

static void test_xids_are_counted_by_code(void **state)
{
	struct gpu_states *states = start("1", "");

	(void)state;
	assert_true(wait_for(states, 0, was_read));
	assert_true(now[0].xids_told);
	assert_int_equal(now[0].xids.total, 0);
	for (int i = 1; i <= 20; i++) {
		char text[64];

		snprintf(text, sizeof(text), "xids %d\nxid %d\n", i, i);
		simnvml_set(text);
		xids_wanted = (uint64_t)i;
		assert_true(wait_for(states, 0, has_xids));
	}
	assert_int_equal(now[0].xids.total, 20);
	assert_int_equal(now[0].xids.last, 20);
	assert_int_equal(now[0].xids.n_codes, GPU_STATE_XIDS_MAX);
	assert_int_equal(now[0].xids.codes[0].code, 1);
	assert_int_equal(now[0].xids.codes[GPU_STATE_XIDS_MAX - 1].code, 0);
	assert_int_equal(now[0].xids.codes[GPU_STATE_XIDS_MAX - 1].count,
	                 20 - (GPU_STATE_XIDS_MAX - 1));
	gpu_states_free(states);
}

static void test_mig_devices_and_their_processes_are_named(void **state)
{
	struct gpu_states *states;

	(void)state;
	states = start_with_pid("1", "migs 2\nprocesses 3\n", "77");
	assert_true(wait_for(states, 0, was_read));
	assert_true(now[0].mig_mode);
	assert_int_equal(now[0].n_mig, 2);
	assert_string_equal(now[0].mig[1].name, "NVIDIA Simulated 0 MIG 1g.10gb");
	assert_string_equal(now[0].mig[1].uuid, "MIG-00000000-0000-0000-0000-000000000020");
	assert_int_equal(now[0].mig[1].gpu_instance, 2);
	assert_int_equal(now[0].n_processes, 3);
	assert_int_equal(now[0].processes[0].mig, 0);
	assert_int_equal(now[0].processes[2].pid, 79);
	assert_int_equal(now[0].processes[2].bytes, 1 << 30);
	gpu_states_free(states);
}

static void test_processes_are_bounded_and_the_rest_is_counted(void **state)
{
	struct gpu_states *states = start("1", "processes 300\n");

	(void)state;
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].n_processes, GPU_STATE_PROCESSES_MAX);
	assert_int_equal(now[0].processes_left_out, 300 - GPU_STATE_PROCESSES_MAX);
	gpu_states_free(states);
	states = start("1", "processes 600\n");
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].n_processes, 0);
	assert_int_equal(now[0].processes_left_out, 600);
	gpu_states_free(states);
}

static void test_shares_of_processes_are_the_newest_that_the_driver_has(void **state)
{
	struct gpu_states *states;

	(void)state;
	states = start_with_pid("1", "processes 2\nprocess_busy 40\n", "77");
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].processes[0].busy_percent, 40);
	assert_int_equal(now[0].processes[1].busy_percent, 40);
	gpu_states_free(states);
	states = start_with_pid("1", "process_busy 0\n", "77"); /* it is told of no one */
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].processes[0].busy_percent, 0);
	gpu_states_free(states);
	states = start_with_pid("1", "process_late 10\n", "77"); /* of then */
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].processes[0].busy_percent, 0);
	gpu_states_free(states);
	states = start_with_pid("1", "process_busy 101\n", "77");
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].processes[0].busy_percent, GPU_UNKNOWN);
	gpu_states_free(states);
	states = start_with_pid("1", "fail.process_utilization 3\n", "77");
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].processes[0].busy_percent, GPU_UNKNOWN);
	assert_int_equal(now[0].processes[0].bytes, 1 << 30);
	gpu_states_free(states);
	states = start_with_pid("1", "migs 1\n", "77");
	assert_true(wait_for(states, 0, was_read));
	assert_int_equal(now[0].processes[0].busy_percent, GPU_UNKNOWN);
	gpu_states_free(states);
}

static void test_without_a_driver_there_is_a_sentence(void **state)
{
	struct gpu_states *states;
	char text[256] = "";

	(void)state;
	setenv("SIMNVML_FAIL", "init", 1);
	states = gpu_states_new(TICK_NS);
	for (int i = 0; i < 100 && !*text; i++) {
		usleep(20000);
		gpu_states_why(states, text, sizeof(text));
	}
	assert_string_equal(text, "no GPU figures: libnvidia-ml.so.1: Driver Not Loaded");
	assert_int_equal(gpu_states_read(states, now, GPUS_MAX, simnvml_now()), 0);
	gpu_states_free(states);
}

/* ---- the process that calls NVML ------------------------------------------------------------ */

static char why[256];

static bool has_why(struct gpu_states *states, const char *part)
{
	for (int i = 0; i < PATIENCE_S * 50; i++) {
		gpu_states_why(states, why, sizeof(why));
		if (strstr(why, part))
			return true;
		usleep(20000);
	}
	return false;
}

static bool has_two_xids(const struct gpu_state *gpu)
{
	return gpu->xids.total == 2;
}

static bool has_four_xids(const struct gpu_state *gpu)
{
	return gpu->xids.total == 4;
}

static void test_what_was_counted_stays_when_the_driver_kills_its_process(void **state)
{
	struct gpu_states *states = start("1", "");
	struct gpu_process_figures figures;
	uint64_t reads;

	(void)state;
	assert_true(wait_for(states, 0, was_read));
	simnvml_set("xids 2\nxid 31\n");
	assert_true(wait_for(states, 0, has_two_xids));
	simnvml_set("die 1\n");
	assert_true(has_why(states, "ended by signal 6"));
	assert_string_equal(why, "no GPU figures: the process that asks NVML ended by signal 6; "
	                         "the next one in 1 s");
	gpu_states_read(states, now, 1, simnvml_now());
	reads = now[0].reads;
	assert_int_equal(now[0].value[GPU_VALUE_POWER_MW], 300000);
	simnvml_set("");
	usleep(1200000);
	assert_true(wait_for(states, 0, was_read));
	simnvml_set("xids 2\nxid 31\n");
	assert_true(wait_for(states, 0, has_four_xids));
	assert_int_equal(now[0].xids.n_codes, 1);
	assert_int_equal(now[0].xids.codes[0].count, 4);
	assert_true(now[0].reads > reads);
	gpu_states_figures(states, &figures);
	assert_int_equal(figures.starts, 2);
	assert_int_equal(figures.ended, 1);
	assert_int_equal(figures.refused, 0);
	gpu_states_free(states);
}

static void test_a_process_that_says_what_cannot_be_is_ended(void **state)
{
	struct gpu_states *states = start("1", "");
	struct gpu_process_figures figures;

	(void)state;
	assert_true(wait_for(states, 0, was_read));
	simnvml_set("lie 1\n");
	assert_true(has_why(states, "said what cannot be"));
	gpu_states_figures(states, &figures);
	assert_int_equal(figures.refused, 1);
	gpu_states_free(states);
}

/* The process of this one that calls NVML. */
static pid_t child(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	while (!found && (entry = readdir(proc))) {
		char path[300], name[32];
		int pid, parent;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = fopen(path, "re");
		if (file && fscanf(file, "%d (%31[^)]) %*c %d", &pid, name, &parent) == 3 &&
		    parent == getpid() && !strcmp(name, "cuscope-nvml"))
			found = pid;
		if (file)
			fclose(file);
	}
	closedir(proc);
	return found;
}

static void test_a_silent_process_is_late_and_the_end_does_not_wait(void **state)
{
	struct gpu_states *states = start("1", "");
	uint64_t begin_ns;
	pid_t pid;

	(void)state;
	assert_true(wait_for(states, 0, was_read));
	pid = child();
	assert_true(pid > 0);
	kill(pid, SIGSTOP);
	assert_true(wait_for(states, 0, is_late));
	begin_ns = simnvml_now();
	gpu_states_free(states);
	assert_in_range(simnvml_now() - begin_ns, 0, 1000000000);
	assert_int_equal(kill(pid, 0), -1);
}

/* Whose file could be another's is not loaded. */
static void test_a_library_that_others_may_write_is_not_loaded(void **state)
{
	char path[64], command[9000], *kept = strdup(getenv("LD_LIBRARY_PATH"));
	struct gpu_states *states;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/simnvml.%d.open", (int)getpid());
	snprintf(command, sizeof(command), "mkdir %s && cp %s/libnvidia-ml.so.1 %s && chmod 777 %s",
	         path, kept, path, path);
	assert_int_equal(system(command), 0);
	setenv("LD_LIBRARY_PATH", path, 1);
	states = start("1", "");
	assert_true(has_why(states, "no GPU figures: "));
	assert_non_null(strstr(why, "others than root may change /tmp/"));
	gpu_states_free(states);
	setenv("LD_LIBRARY_PATH", kept, 1);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
	free(kept);
}

static void test_numbers_of_descriptors_that_are_free_do_not_matter(void **state)
{
	int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
	struct gpu_states *states;

	(void)state;
	close(STDIN_FILENO);
	close(3);
	states = start("1", "");
	assert_true(wait_for(states, 0, was_read));
	gpu_states_free(states);
	dup2(input, STDIN_FILENO);
	close(input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_of_each_gpu_are_read),
		cmocka_unit_test(test_what_a_driver_does_not_tell_is_unknown),
		cmocka_unit_test(test_a_total_of_bytes_in_32_bits_is_not_told),
		cmocka_unit_test(test_metrics_are_means_without_the_first_pair),
		cmocka_unit_test(test_a_gpu_without_gpm_has_its_utilisation),
		cmocka_unit_test(test_a_gpu_that_hangs_keeps_its_last_values_and_holds_up_no_other),
		cmocka_unit_test(test_a_gpu_that_is_lost_says_so_and_may_come_back),
		cmocka_unit_test(test_xids_are_counted_by_code),
		cmocka_unit_test(test_mig_devices_and_their_processes_are_named),
		cmocka_unit_test(test_processes_are_bounded_and_the_rest_is_counted),
		cmocka_unit_test(test_shares_of_processes_are_the_newest_that_the_driver_has),
		cmocka_unit_test(test_without_a_driver_there_is_a_sentence),
		cmocka_unit_test(test_what_was_counted_stays_when_the_driver_kills_its_process),
		cmocka_unit_test(test_a_process_that_says_what_cannot_be_is_ended),
		cmocka_unit_test(test_a_silent_process_is_late_and_the_end_does_not_wait),
		cmocka_unit_test(test_a_library_that_others_may_write_is_not_loaded),
		cmocka_unit_test(test_numbers_of_descriptors_that_are_free_do_not_matter),
	};

	return cmocka_run_group_tests(tests, simnvml_load, simnvml_forget);
}
