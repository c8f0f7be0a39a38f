# SPDX-License-Identifier: MIT
"""Who a process is, as the node agent tells it: in cgroups and namespaces like those of containers."""

import os

import checks
from harness import alone
from identities import ID, UID, Agent, cgroup, in_mounts, program


def test_identity_of_environment_and_user(case):
    agent = Agent(case, "--label-env", "TEAM")
    process = program(case, env={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TEAM": 'blue "1"',
                                 "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"})
    labels = agent.wait_for(process, rank="3")
    checks.equal("labels", {"pid": str(process.pid), "process": "gpuloop", "user": "root", "rank": "3", "slurm_job": "77",
                            "slurm_step": "0", "slurm_by": "own_word", "env_TEAM": 'blue \\"1\\"', "local_rank": "1",
                            "world_size": "8", "command": "gpuloop"},
                 {key: value for key, value in labels.items() if key != "unit"})
    checks.equal("status", 0, agent.end())


def test_identity_of_a_docker_container(case):
    """In a pid namespace, too: pids are those of the host."""
    with cgroup(f"/docker/{ID}") as folder:
        agent = Agent(case)
        process = program(case, folder=folder)
        agent.wait_for(process, container=ID[:12], container_id=ID, runtime="docker", container_by="cgroup")
        process.stop()


def test_identity_of_a_slurm_step(case):
    with cgroup("/slurm/uid_1234/job_4711/step_2/task_0") as folder:
        agent = Agent(case)
        process = program(case, folder=folder, env={"SLURM_JOB_ID": "1", "SLURM_PROCID": "5"})
        agent.wait_for(process, slurm_job="4711", slurm_step="2", slurm_by="cgroup", rank="5")
        process.stop()


def pod_files(case):
    """As the kubelet lays them out, and the commands that mount them."""
    account = case.path("account")
    os.makedirs(os.path.join(account, "..2026"))
    for path, text in (("account/..2026/namespace", "team-a\n"), ("hostname", "trainer-0\n")):
        with open(case.path(path), "w") as file:
            file.write(text)
    os.symlink("..2026", os.path.join(account, "..data"))
    return [f"mount -t tmpfs none {os.path.realpath('/var/run')}", "mkdir -p /var/run/secrets/kubernetes.io/serviceaccount",
            f"mount --bind {account} /var/run/secrets/kubernetes.io/serviceaccount",
            f"mount --bind {case.path('hostname')} /etc/hostname"]


def test_identity_of_a_pod_by_its_own_files(case):
    uid = UID + "01"
    with cgroup(f"/kubepods/burstable/pod{uid}/{ID}") as folder:
        agent = Agent(case)
        process = in_mounts(case, *pod_files(case), folder=folder)
        agent.wait_for(process, pod="trainer-0", namespace="team-a", pod_by="own_word", pod_uid=uid, container=ID[:12],
                       container_by="cgroup")
        process.stop()


@alone
def test_identity_follows_the_cgroup(case):
    """A runtime may move a process after its start."""
    with cgroup(f"/docker/{ID[:-2]}99") as folder:
        agent = Agent(case)
        process = program(case)
        agent.wait_for(process, command="gpuloop")
        with open(os.path.join(folder, "cgroup.procs"), "w") as procs:
            procs.write(str(process.pid))
        agent.wait_for(process, container=ID[:12])
        process.stop()
