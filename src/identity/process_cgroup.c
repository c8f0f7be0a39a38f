// SPDX-License-Identifier: MIT
/*
 * What the cgroups of a process tell: its container, pod, job and unit. Runtimes name cgroups after
 * these, each in a way of its own, and differently when systemd makes them for the runtime.
 *
 * A name counts from the outside in. Whoever may make cgroups below his own could name them like
 * another's container: a container, a user by his own systemd, a service that systemd has handed
 * its cgroup to. So the outermost container is taken, and what stands below a unit that is no
 * runtime's is marked as somebody's own word.
 */
#include "identity/process_read.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "identity/process_identity.h"

#define ID_DIGITS  64
#define UID_LENGTH 36 /* 8-4-4-4-12 */
#define PART_MAX   255

/* What was met on the way to a part of the path. */
struct process_cgroup_walk {
	struct process_cgroup *cgroup;
	char parent[PART_MAX + 1];
	bool users;     /* what follows was made by a unit that is no runtime: a user's, or any */
	bool inside;    /* of a container: what follows was made by that */
	bool kubepods;  /* of pods */
	bool slurm;     /* of jobs */
	const char *by; /* the runtime that has made the folder, "" where that is not known */
};

/* ---- texts --------------------------------------------------------------------------------- */

static size_t hex_digits(const char *text)
{
	size_t n = 0;

	while (isdigit((unsigned char)text[n]) || (text[n] >= 'a' && text[n] <= 'f'))
		n++;
	return n;
}

static bool is_id(const char *text)
{
	return hex_digits(text) == ID_DIGITS && !text[ID_DIGITS];
}

static bool is_number(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n && n < IDENTITY_NUMBER && !text[n];
}

static bool ends(const char *text, const char *with)
{
	size_t len = strlen(text), n = strlen(with);

	return len > n && !strcmp(text + len - n, with);
}

static const char *behind(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return !strncmp(text, prefix, n) && text[n] ? text + n : NULL;
}

/* Undoes what systemd makes of characters that unit names must not hold: "\x2d". */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		unsigned code;
		int used = 0;

		if (sscanf(from, "\\x%2x%n", &code, &used) == 1 && used == 4 && code) {
			*to = (char)code;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static enum identity_source source_of(const struct process_cgroup_walk *walk)
{
	return walk->users || walk->inside ? IDENTITY_OWN_WORD : IDENTITY_CGROUP;
}

/* ---- containers ---------------------------------------------------------------------------- */

static void take_container(struct process_cgroup_walk *walk, const char *runtime, const char *id)
{
	struct process_cgroup *cgroup = walk->cgroup;

	if (!cgroup->container_id[0]) {
		cgroup->container_by = source_of(walk);
		snprintf(cgroup->runtime, sizeof(cgroup->runtime), "%s", runtime);
		process_text(cgroup->container_id, sizeof(cgroup->container_id), id, strlen(id));
	}
	walk->inside = true;
}

/* "docker-ID", "cri-containerd-ID"; and where cgroups are made by name, "SLICE:cri-containerd:ID"
 */
static bool is_prefixed_container(struct process_cgroup_walk *walk, const char *part)
{
	static const struct {
		const char *prefix, *runtime;
	} known[] = {
		{ "docker", "docker" }, { "cri-containerd", "containerd" }, { "crio", "cri-o" },
		{ "libpod", "podman" }, { "nerdctl", "containerd" },
	};
	const char *slice = strchr(part, ':');
	const char *name = slice ? slice + 1 : part;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const char *id = behind(name, known[i].prefix);

		if (!id || *id != (slice ? ':' : '-') || !is_id(id + 1))
			continue;
		take_container(walk, known[i].runtime, id + 1);
		return true;
	}
	return false;
}

/* "machine-NAME.scope" of machinectl, "systemd-nspawn@NAME.service"; and those that libvirt has. */
static bool is_machine(struct process_cgroup_walk *walk, const char *part)
{
	const char *name = behind(part, "machine-");
	const char *runtime = "systemd-nspawn";
	char text[PART_MAX + 1];

	if (strcmp(walk->parent, "machine.slice"))
		return false;
	name = name && ends(part, ".scope") ? name : behind(part, "systemd-nspawn@");
	if (!name || !(ends(name, ".scope") || ends(name, ".service")))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(strrchr(name, '.') - name), name);
	unescape(text);
	if (behind(text, "qemu-"))
		runtime = "qemu";
	else if (behind(text, "lxc-"))
		runtime = "lxc";
	take_container(walk, runtime, text);
	return true;
}

static bool is_container(struct process_cgroup_walk *walk, const char *part)
{
	const char *name = behind(part, "lxc.payload.");
	char plain[PART_MAX + 1];

	snprintf(plain, sizeof(plain), "%s", part);
	if (ends(plain, ".scope"))
		plain[strlen(plain) - strlen(".scope")] = '\0';
	if (is_prefixed_container(walk, plain) || is_machine(walk, part))
		return true;
	if (!name && (!strcmp(walk->parent, "lxc") || !strcmp(walk->parent, "lxc.payload")))
		name = part;
	if (name)
		take_container(walk, "lxc", name);
	else if (is_id(plain))
		take_container(walk, walk->by, plain);
	return name || is_id(plain);
}

/* ---- pods ---------------------------------------------------------------------------------- */

/* With "_" where systemd wants no "-". That of a pod without an API server is 32 digits. */
static bool take_pod_uid(const char *text, char uid[40])
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };
	const char *at = text;
	size_t digits = hex_digits(text);

	if (digits == 32) {
		snprintf(uid, 40, "%.32s", text);
		return !text[32] || text[32] == '.' || text[32] == ':';
	}
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		if (hex_digits(at) != groups[i])
			return false;
		at += groups[i];
		if (i + 1 < ARRAY_SIZE(groups) && *at != '-' && *at != '_')
			return false;
		at += i + 1 < ARRAY_SIZE(groups);
	}
	if (*at && *at != '.' && *at != ':')
		return false;
	snprintf(uid, 40, "%.*s", UID_LENGTH, text);
	for (char *dash = uid; (dash = strchr(dash, '_'));)
		*dash = '-';
	return true;
}

/* "kubepods", "burstable", "podUID", or all in one name: "kubepods-burstable-podUID.slice". */
static void look_for_pod(struct process_cgroup_walk *walk, const char *part)
{
	struct process_cgroup *cgroup = walk->cgroup;
	const char *kubepods = strstr(part, "kubepods"), *pod = strstr(part, "-pod");
	char uid[40];

	walk->kubepods = walk->kubepods || kubepods;
	if (!walk->kubepods || cgroup->pod_uid[0])
		return;
	if (strstr(part, "burstable"))
		snprintf(cgroup->qos, sizeof(cgroup->qos), "burstable");
	else if (strstr(part, "besteffort"))
		snprintf(cgroup->qos, sizeof(cgroup->qos), "besteffort");
	pod = kubepods && pod ? pod + 4 : behind(part, "pod");
	if (!pod || !take_pod_uid(pod, uid))
		return;
	memcpy(cgroup->pod_uid, uid, sizeof(uid));
	cgroup->pod_by = source_of(walk);
	if (!cgroup->qos[0])
		snprintf(cgroup->qos, sizeof(cgroup->qos), "guaranteed");
}

/* ---- jobs and units ------------------------------------------------------------------------ */

/* "slurm/uid_1000/job_12/step_0", and "system.slice/slurmstepd.scope/job_12/step_0/user/task_1". */
static void look_for_job(struct process_cgroup_walk *walk, const char *part)
{
	struct process_cgroup *cgroup = walk->cgroup;
	const char *job = behind(part, "job_"), *step = behind(part, "step_");
	bool words = step && (!strcmp(step, "batch") || !strcmp(step, "extern") ||
	                      !strcmp(step, "interactive"));

	if (!strcmp(part, "slurm") || behind(part, "slurm_") || ends(part, "_slurmstepd.scope") ||
	    !strcmp(part, "slurmstepd.scope"))
		walk->slurm = true;
	if (!walk->slurm)
		return;
	if (job && is_number(job) && !cgroup->slurm_job[0]) {
		process_text(cgroup->slurm_job, sizeof(cgroup->slurm_job), job, strlen(job));
		cgroup->slurm_by = source_of(walk);
	}
	if (cgroup->slurm_job[0] && step && (words || is_number(step)) && !cgroup->slurm_step[0])
		process_text(cgroup->slurm_step, sizeof(cgroup->slurm_step), step, strlen(step));
}

static void look_for_unit(struct process_cgroup_walk *walk, const char *part)
{
	char text[PART_MAX + 1];

	if (walk->cgroup->unit[0] || walk->slurm || walk->users ||
	    (!ends(part, ".service") && !ends(part, ".scope")))
		return;
	snprintf(text, sizeof(text), "%s", part);
	unescape(text);
	process_text(walk->cgroup->unit, sizeof(walk->cgroup->unit), text, strlen(text));
}

/* ---- paths --------------------------------------------------------------------------------- */

static const char *maker_of(const char *part, const char *otherwise)
{
	static const struct {
		const char *part, *runtime;
	} known[] = {
		{ "docker", "docker" }, { "ecs", "docker" },        { "default", "containerd" },
		{ "moby", "docker" },   { "k8s.io", "containerd" }, { "libpod_parent", "podman" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(part, known[i].part))
			return known[i].runtime;
	return otherwise;
}

/*
 * systemd hands the cgroup of a unit to the unit's user where that is asked for (Delegate=): then
 * anything may stand below. Units of runtimes are root's.
 */
static bool is_strangers_unit(const char *part)
{
	static const char *const runtimes[] = {
		"containerd.service", "docker.service",      "crio.service",
		"kubelet.service",    "k3s.service",         "k3s-agent.service",
		"rke2-agent.service", "rke2-server.service", "slurmstepd.scope",
	};

	if (!ends(part, ".service") && !ends(part, ".scope"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (!strcmp(part, runtimes[i]))
			return false;
	return !ends(part, "_slurmstepd.scope");
}

/* "user/NAME/0", which libpam-cgfs makes where hierarchies are of before version 2, and hands to
 * the user. */
static bool is_pams(const struct process_cgroup_walk *walk, const char *part)
{
	return !walk->parent[0] && !strcmp(part, "user");
}

static void take_part(struct process_cgroup_walk *walk, const char *part)
{
	look_for_pod(walk, part);
	look_for_job(walk, part);
	if (!is_container(walk, part) && !walk->inside)
		look_for_unit(walk, part);
	walk->by = maker_of(part, walk->by);
	walk->users = walk->users || is_strangers_unit(part) || is_pams(walk, part);
	snprintf(walk->parent, sizeof(walk->parent), "%s", part);
}

void process_cgroup_parse(const char *path, struct process_cgroup *cgroup)
{
	struct process_cgroup_walk walk = { .cgroup = cgroup, .by = "" };
	char part[PART_MAX + 1];

	memset(cgroup, 0, sizeof(*cgroup));
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len && len <= PART_MAX && !(len == 2 && !memcmp(path, "..", 2))) {
			snprintf(part, sizeof(part), "%.*s", (int)len, path);
			take_part(&walk, part);
		}
		path += len + (path[len] == '/');
	}
	if (!cgroup->pod_uid[0])
		cgroup->qos[0] = '\0';
	if (cgroup->container_id[0] || cgroup->slurm_job[0])
		cgroup->unit[0] = '\0';
}

/* Whether `by` is to take the place of what is there: facts of words, and anything of nothing. */
static bool is_better(enum identity_source there, enum identity_source by)
{
	return by && (!there || (there == IDENTITY_OWN_WORD && by != IDENTITY_OWN_WORD));
}

static void merge(struct process_cgroup *all, const struct process_cgroup *one)
{
	if (is_better(all->container_by, one->container_by)) {
		memcpy(all->runtime, one->runtime, sizeof(all->runtime));
		memcpy(all->container_id, one->container_id, sizeof(all->container_id));
		all->container_by = one->container_by;
	}
	if (is_better(all->pod_by, one->pod_by)) {
		memcpy(all->pod_uid, one->pod_uid, sizeof(all->pod_uid));
		memcpy(all->qos, one->qos, sizeof(all->qos));
		all->pod_by = one->pod_by;
	}
	if (is_better(all->slurm_by, one->slurm_by)) {
		memcpy(all->slurm_job, one->slurm_job, sizeof(all->slurm_job));
		memcpy(all->slurm_step, one->slurm_step, sizeof(all->slurm_step));
		all->slurm_by = one->slurm_by;
	} else if (!all->slurm_step[0] && !strcmp(all->slurm_job, one->slurm_job)) {
		memcpy(all->slurm_step, one->slurm_step, sizeof(all->slurm_step));
	}
	if (!all->unit[0])
		memcpy(all->unit, one->unit, sizeof(all->unit));
}

/* "0::/PATH", or "4:memory:/PATH"; " (deleted)" behind one that is gone. */
void process_cgroups_parse(char *text, struct process_cgroup *cgroup)
{
	char *line;

	memset(cgroup, 0, sizeof(*cgroup));
	while ((line = strsep(&text, "\n"))) {
		struct process_cgroup one;
		char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (!path)
			continue;
		if (ends(path, " (deleted)"))
			path[strlen(path) - strlen(" (deleted)")] = '\0';
		process_cgroup_parse(path + 1, &one);
		merge(cgroup, &one);
	}
	if (cgroup->container_id[0] || cgroup->slurm_job[0])
		cgroup->unit[0] = '\0';
}
