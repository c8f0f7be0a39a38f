// SPDX-License-Identifier: MIT
/* Containers, pods, jobs and units by the paths of cgroups that runtimes make. */
#include "unit.h"

#include "base/array.h"
#include "identity/process_read.h"

#define ID     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2    "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID    "0a1b2c3d-1111-2222-3333-444455556666"
#define UND    "0a1b2c3d_1111_2222_3333_444455556666"
#define MIRROR "00112233445566778899aabbccddeeff"

struct shape {
	const char *path, *runtime, *container, *pod, *qos;
};

static const struct shape shapes[] = {
	{ "/docker/" ID, "docker", ID, "", "" },
	{ "/system.slice/docker-" ID ".scope", "docker", ID, "", "" },
	{ "/system.slice/docker-" ID ".scope/init", "docker", ID, "", "" },
	{ "/../../system.slice/docker-" ID ".scope", "docker", ID, "", "" },
	{ "/ecs/0123/" ID, "docker", ID, "", "" },
	{ "/default/" ID, "containerd", ID, "", "" },
	{ "/system.slice/nerdctl-" ID ".scope", "containerd", ID, "", "" },
	{ "/machine.slice/libpod-" ID ".scope", "podman", ID, "", "" },
	{ "/machine.slice/libpod-" ID ".scope/container", "podman", ID, "", "" },
	{ "/libpod_parent/libpod-" ID, "podman", ID, "", "" },
	{ "/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", "podman", ID, "",
	  "" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "", "", "", "" },
	{ "/kubepods/besteffort/pod" UID "/" ID, "", ID, UID, "besteffort" },
	{ "/kubepods/burstable/pod" UID "/crio-" ID, "cri-o", ID, UID, "burstable" },
	{ "/kubepods/pod" UID "/" ID, "", ID, UID, "guaranteed" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UND
	  ".slice/cri-containerd-" ID ".scope",
	  "containerd", ID, UID, "burstable" },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UND ".slice/crio-" ID
	  ".scope/container",
	  "cri-o", ID, UID, "besteffort" },
	{ "/kubepods.slice/kubepods-pod" UND ".slice/docker-" ID ".scope", "docker", ID, UID,
	  "guaranteed" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" MIRROR
	  ".slice/cri-containerd-" ID ".scope",
	  "containerd", ID, MIRROR, "burstable" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UND
	  ".slice/crio-conmon-" ID ".scope",
	  "", "", UID, "burstable" },
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UND ".slice:cri-containerd:" ID,
	  "containerd", ID, UID, "burstable" },
	{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UND
	  ".slice/cri-containerd-" ID ".scope",
	  "containerd", ID, UID, "guaranteed" },
	{ "/lxc/web", "lxc", "web", "", "" },
	{ "/lxc.payload.web/init.scope", "lxc", "web", "", "" },
	{ "/lxc.payload/web/system.slice/cron.service", "lxc", "web", "", "" },
	{ "/lxc.monitor.web", "", "", "", "" },
	{ "/machine.slice/machine-web\\x2done.scope/payload", "systemd-nspawn", "web-one", "", "" },
	{ "/machine.slice/systemd-nspawn@web.service/payload", "systemd-nspawn", "web", "", "" },
	{ "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt", "qemu", "qemu-1-web", "", "" },
	{ "/system.slice/cron.service", "", "", "", "" },
	{ "/", "", "", "", "" },
	{ "", "", "", "", "" },
	/* nearly what they would be */
	{ "/docker/" ID "0", "", "", "", "" },
	{ "/docker-" ID "x", "", "", "", "" },
	{ "/machine.slice/systemd-nspawn@.service", "", "", "", "" },
	{ "/machine.slice/systemd-nspawn@web", "", "", "", "" },
	{ "/machine.slice/machine-web", "", "", "", "" },
	{ "/kubepods/pod0a1b2c3d-1111-2222-3333-44445555666x/x", "", "", "", "" },
	{ "/pod" UID "/x", "", "", "", "" },
};

static void test_shapes_of_runtimes(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct process_cgroup cgroup;

		process_cgroup_parse(shapes[i].path, &cgroup);
		assert_string_equal(cgroup.container_id, shapes[i].container);
		assert_string_equal(cgroup.runtime, shapes[i].runtime);
		assert_string_equal(cgroup.pod_uid, shapes[i].pod);
		assert_string_equal(cgroup.qos, shapes[i].qos);
		assert_int_equal(cgroup.container_by,
		                 shapes[i].container[0] ? IDENTITY_CGROUP : IDENTITY_UNKNOWN);
		assert_int_equal(cgroup.pod_by,
		                 shapes[i].pod[0] ? IDENTITY_CGROUP : IDENTITY_UNKNOWN);
	}
}

/* Who runs in a container can make cgroups in it, named like another's. */
static void test_the_outermost_container_counts(void **state)
{
	struct process_cgroup cgroup;

	process_cgroup_parse("/docker/" ID "/kubepods/pod" UID "/" ID2, &cgroup);
	assert_string_equal(cgroup.container_id, ID);
	assert_int_equal(cgroup.container_by, IDENTITY_CGROUP);
	assert_string_equal(cgroup.pod_uid, UID);
	assert_int_equal(cgroup.pod_by, IDENTITY_OWN_WORD);
	process_cgroup_parse("/docker/" ID "/slurm/uid_0/job_7", &cgroup);
	assert_string_equal(cgroup.slurm_job, "7");
	assert_int_equal(cgroup.slurm_by, IDENTITY_OWN_WORD);
}

/* Below a user's systemd the user makes what he likes: podman without root does, too. */
static void test_what_a_user_makes_is_his_own_word(void **state)
{
	struct process_cgroup cgroup;

	process_cgroup_parse("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	                     ".scope/container",
	                     &cgroup);
	assert_string_equal(cgroup.container_id, ID);
	assert_int_equal(cgroup.container_by, IDENTITY_OWN_WORD);
	process_cgroup_parse("/user.slice/user-1000.slice/user@1000.service/kubepods/pod" UID "/x",
	                     &cgroup);
	assert_int_equal(cgroup.pod_by, IDENTITY_OWN_WORD);
	process_cgroup_parse("/system.slice/jupyter.service/docker/" ID, &cgroup);
	assert_int_equal(cgroup.container_by, IDENTITY_OWN_WORD);
	process_cgroup_parse("/user.slice/user-1000.slice/session-3.scope/slurm/uid_0/job_7",
	                     &cgroup);
	assert_int_equal(cgroup.slurm_by, IDENTITY_OWN_WORD);
	process_cgroup_parse("/user/eve/0/kubepods/burstable/pod" UID "/" ID, &cgroup);
	assert_int_equal(cgroup.pod_by, IDENTITY_OWN_WORD); /* by libpam-cgfs */
	assert_int_equal(cgroup.container_by, IDENTITY_OWN_WORD);
	process_cgroup_parse("/user/eve/0/slurm/uid_0/job_7", &cgroup);
	assert_int_equal(cgroup.slurm_by, IDENTITY_OWN_WORD);
	process_cgroup_parse("/user/eve/0/sshd.service", &cgroup);
	assert_string_equal(cgroup.unit, "");
	process_cgroup_parse("/system.slice/x_slurmstepd.scope.service/slurmstepd.scope/job_7",
	                     &cgroup);
	assert_int_equal(cgroup.slurm_by, IDENTITY_OWN_WORD);
}

static void check_job(const char *path, const char *job, const char *step)
{
	struct process_cgroup cgroup;

	process_cgroup_parse(path, &cgroup);
	assert_string_equal(cgroup.slurm_job, job);
	assert_string_equal(cgroup.slurm_step, step);
	assert_int_equal(cgroup.slurm_by, job[0] ? IDENTITY_CGROUP : IDENTITY_UNKNOWN);
	if (job[0])
		assert_string_equal(cgroup.unit, "");
}

static void test_jobs_of_slurm(void **state)
{
	check_job("/slurm/uid_1000/job_12/step_0/task_1", "12", "0");
	check_job("/slurm_node7/uid_1000/job_12/step_batch", "12", "batch");
	check_job("/system.slice/slurmstepd.scope/job_12/step_extern/user/task_0", "12", "extern");
	check_job("/system.slice/node7_slurmstepd.scope/job_12/step_3/user/task_0", "12", "3");
	check_job("/slurm/uid_1000/job_12", "12", "");
	check_job("/slurm/uid_1000/job_12x/step_0", "", "");
	check_job("/slurm/uid_1000/job_99999999999999999999/step_0", "", "");
	check_job("/elsewhere/job_12/step_0", "", "");
}

static void check_unit(const char *path, const char *unit)
{
	struct process_cgroup cgroup;

	process_cgroup_parse(path, &cgroup);
	assert_string_equal(cgroup.unit, unit);
}

static void test_units_of_systemd(void **state)
{
	check_unit("/system.slice/my\\x2dserver.service", "my-server.service");
	check_unit("/user.slice/user-1000.slice/session-3.scope", "session-3.scope");
	check_unit("/user.slice/user-1000.slice/user@1000.service/app.slice/x.service",
	           "user@1000.service");
	check_unit("/system.slice/docker-" ID ".scope/x.service", "");
}

static void parse(const char *text, struct process_cgroup *cgroup)
{
	char copy[2048];

	snprintf(copy, sizeof(copy), "%s", text);
	process_cgroups_parse(copy, cgroup);
}

static void test_hierarchies_complete_each_other(void **state)
{
	struct process_cgroup cgroup;

	parse("12:freezer:/slurm/uid_1000/job_12/step_0\n4:memory:/slurm/uid_1000/job_12\n"
	      "1:name=systemd:/system.slice/slurmd.service\n0::/system.slice/slurmd.service\n",
	      &cgroup);
	assert_string_equal(cgroup.slurm_job, "12");
	assert_string_equal(cgroup.slurm_step, "0");
	assert_string_equal(cgroup.unit, "");
	parse("3:cpu,cpuacct:/\n1:name=systemd:/docker/" ID "\n", &cgroup);
	assert_string_equal(cgroup.container_id, ID);
	parse("0::/docker/" ID " (deleted)\n", &cgroup);
	assert_string_equal(cgroup.container_id, ID);
	parse("not a line\n0:\n::\n\n", &cgroup);
	assert_string_equal(cgroup.container_id, "");
}

/* A fact takes the place of somebody's word, whichever line is first. */
static void test_a_fact_wins_over_a_word(void **state)
{
	static const char word[] = "5:a:/user.slice/user@1000.service/docker/" ID2 "\n";
	static const char fact[] = "4:b:/docker/" ID "\n";
	struct process_cgroup cgroup;
	char text[512];

	snprintf(text, sizeof(text), "%s%s", word, fact);
	parse(text, &cgroup);
	assert_string_equal(cgroup.container_id, ID);
	snprintf(text, sizeof(text), "%s%s", fact, word);
	parse(text, &cgroup);
	assert_string_equal(cgroup.container_id, ID);
	assert_int_equal(cgroup.container_by, IDENTITY_CGROUP);
}

static void test_names_are_made_harmless(void **state)
{
	struct process_cgroup cgroup;

	process_cgroup_parse("/lxc/\x1b[31m\xff", &cgroup);
	assert_string_equal(cgroup.container_id, "\\x1b[31m\\xff");
	process_cgroup_parse("/machine.slice/machine-a\\x1b\\x0a.scope", &cgroup);
	assert_string_equal(cgroup.container_id, "a\\x1b\\x0a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes_of_runtimes),
		cmocka_unit_test(test_the_outermost_container_counts),
		cmocka_unit_test(test_what_a_user_makes_is_his_own_word),
		cmocka_unit_test(test_jobs_of_slurm),
		cmocka_unit_test(test_units_of_systemd),
		cmocka_unit_test(test_hierarchies_complete_each_other),
		cmocka_unit_test(test_a_fact_wins_over_a_word),
		cmocka_unit_test(test_names_are_made_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
