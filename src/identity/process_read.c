// SPDX-License-Identifier: MIT
#include "identity/process_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "identity/process_identity.h"
#include "probe/helper.h"
#include "probe/mounts.h"

/* ---- process command ----------------------------------------------------------------------- */

#define OPTIONS_MAX 16 /* before the script that are passed over */

struct process_words {
	const char *at;
	size_t left;
};

/* The next word and its length, or NULL. */
static const char *next_word(struct process_words *words, size_t *len)
{
	const char *word = words->at;

	if (!words->left)
		return NULL;
	*len = strnlen(word, words->left);
	words->at += *len + (*len < words->left);
	words->left -= *len + (*len < words->left);
	return word;
}

static const char *last_part(const char *word, size_t *len)
{
	const char *slash = memrchr(word, '/', *len);

	if (!slash || slash + 1 == word + *len)
		return word;
	*len -= (size_t)(slash + 1 - word);
	return slash + 1;
}

static bool is_interpreter(const char *program, size_t len)
{
	static const char *const known[] = { "python", "julia", "perl", "ruby", "bash", "sh" };
	char name[32];

	if (len >= sizeof(name))
		return false;
	memcpy(name, program, len);
	name[len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i]);

		if (!strncmp(name, known[i], n) && !name[n + strspn(name + n, "0123456789.")])
			return true;
	}
	return false;
}

static bool is_word(const char *word, size_t len, const char *text)
{
	return len == strlen(text) && !memcmp(word, text, len);
}

/* The script, or the module of "-m"; NULL: there is none, or it is told by "-c". */
static const char *find_script(struct process_words *words, size_t *len)
{
	const char *word;

	for (int i = 0; i < OPTIONS_MAX && (word = next_word(words, len)); i++) {
		if (is_word(word, *len, "-m"))
			return next_word(words, len);
		if (is_word(word, *len, "-c"))
			return NULL;
		if (is_word(word, *len, "-W") || is_word(word, *len, "-X"))
			next_word(words, len); /* what these want */
		else if (*len && word[0] != '-')
			return last_part(word, len);
	}
	return NULL;
}

void process_command_parse(const char *bytes, size_t n, char *command, size_t room)
{
	struct process_words words = { bytes, n };
	size_t len = 0, used;
	const char *word = next_word(&words, &len);
	bool interpreter;

	command[0] = '\0';
	if (!word)
		return;
	word = last_part(word, &len);
	interpreter = is_interpreter(word, len);
	process_text(command, room, word, len);
	word = interpreter ? find_script(&words, &len) : NULL;
	used = strlen(command);
	if (!word || used + 2 >= room)
		return;
	command[used++] = ' ';
	process_text(command + used, room - used, word, len);
}

/* ---- process read -------------------------------------------------------------------------- */

#define CGROUP_BYTES 16384 /* of /proc/PID/cgroup: 13 hierarchies with long paths */
#define PIECE_BYTES  65536 /* that are read of memory at once */
#define PAGE_BYTES   4096

struct process_reader {
	struct process_reader_options options;
	int proc;
	struct process_users *users;
	char node[IDENTITY_POD]; /* this machine's name */
	char *block;             /* PROCESS_ENVIRONMENT */
	char *cgroup;            /* CGROUP_BYTES */
};

struct process_reader *process_reader_new(const struct process_reader_options *options)
{
	const char *path = options->made_proc ? options->made_proc : "/proc";
	int proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct process_reader *reader;

	if (proc < 0)
		return NULL;
	reader = xcalloc(1, sizeof(*reader));
	reader->options = *options;
	reader->proc = proc;
	reader->users = process_users_new(options->made_users);
	gethostname(reader->node, sizeof(reader->node) - 1);
	reader->block = xmalloc(PROCESS_ENVIRONMENT);
	reader->cgroup = xmalloc(CGROUP_BYTES);
	return reader;
}

void process_reader_free(struct process_reader *reader)
{
	if (!reader)
		return;
	process_users_free(reader->users);
	free(reader->cgroup);
	free(reader->block);
	close(reader->proc);
	free(reader);
}

void process_reader_choose(struct process_reader *reader, const struct process_label_choice *choice)
{
	reader->options.choice = *choice;
}

/* ---- files of /proc/PID that need nothing of the process ----------------------------------- */

/* One process while it is read. */
struct process_reading {
	int folder;
	pid_t pid;
	pid_t thread; /* that lives, where the first one has ended; else 0 */
	uint64_t start_time;
	struct root_file_rights rights;
	uint64_t arguments, arguments_end, environment, environment_end;
};

/* The first `room` - 1 bytes and a NUL, or -1. */
static ssize_t read_file(int folder, const char *name, char *to, size_t room)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t have = 0;
	ssize_t n = 0;

	to[0] = '\0';
	if (fd < 0)
		return -1;
	while (have < room - 1 && (n = read(fd, to + have, room - 1 - have)) > 0)
		have += (size_t)n;
	close(fd);
	to[have] = '\0';
	return n < 0 ? -1 : (ssize_t)have;
}

/* Where its arguments and variables lie; 0 of a process that has no memory. */
static void find_memory(const char *text, struct process_reading *reading)
{
	uint64_t *const fields[] = { &reading->arguments, &reading->arguments_end,
		                     &reading->environment, &reading->environment_end };
	const char *at = strrchr(text, ')');

	for (int field = 3; at && field <= 48; field++)
		at = strchr(at + 1, ' ');
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		*fields[i] = at ? strtoull(at, NULL, 10) : 0;
		at = at ? strchr(at + 1, ' ') : NULL;
	}
}

static bool read_stat_text(const struct process_reader *reader,
                           const struct process_reading *reading, const char *name, char *text,
                           size_t room, struct process_stat *stat)
{
	ssize_t n = reader->options.made_proc
	                    ? read_file(reading->folder, name, text, room)
	                    : process_look(reading->pid, PROCESS_TEXT, name, text, room - 1);

	text[n > 0 ? n : 0] = '\0';
	return process_stat_parse(text, stat) && stat->state != 'X';
}

/* A process whose first thread has ended lives, and is no less who it is: memory and cgroups are
 * those of another thread. */
static bool read_stat(const struct process_reader *reader, struct process_reading *reading)
{
	struct process_stat stat, other;
	char text[1024], name[40];

	if (!read_stat_text(reader, reading, "stat", text, sizeof(text), &stat) ||
	    (reading->start_time && reading->start_time != stat.start_time))
		return false;
	reading->thread = stat.state == 'Z' && !reader->options.made_proc
	                          ? process_living_thread(reading->pid)
	                          : 0;
	snprintf(name, sizeof(name), "task/%d/stat", reading->thread);
	if (stat.state == 'Z' &&
	    (!reading->thread ||
	     !read_stat_text(reader, reading, name, text, sizeof(text), &other) ||
	     other.state == 'Z'))
		return false;
	reading->start_time = stat.start_time;
	find_memory(text, reading);
	return true;
}

static bool begin_reading(const struct process_reader *reader, pid_t pid, uint64_t latest,
                          struct process_reading *reading)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", pid);
	*reading = (struct process_reading){ .pid = pid };
	reading->folder = openat(reader->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (reading->folder < 0)
		return false;
	if (read_stat(reader, reading) && (!latest || reading->start_time <= latest))
		return true;
	close(reading->folder);
	return false;
}

static void read_name(const struct process_reading *reading, struct process_identity *identity)
{
	char text[IDENTITY_NAME + 1];
	ssize_t n = read_file(reading->folder, "comm", text, sizeof(text));

	if (n > 0)
		process_text(identity->name, sizeof(identity->name), text,
		             (size_t)n - (text[n - 1] == '\n'));
}

/* Of the four of "Uid:" or "Gid:", which each line begins with: real, ..., for files. */
static bool find_ids(const char *status, const char *what, uint32_t *real, uint32_t *for_files)
{
	const char *line = strstr(status, what);

	return line &&
	       sscanf(line + strlen(what), "%" SCNu32 " %*u %*u %" SCNu32, real, for_files) == 2;
}

static void read_user(struct process_reader *reader, struct process_reading *reading,
                      struct process_identity *identity)
{
	char text[2048];
	uint32_t group;

	reading->rights = (struct root_file_rights){ (uid_t)-1, (gid_t)-1 };
	read_file(reading->folder, "status", text, sizeof(text));
	if (!find_ids(text, "\nUid:\t", &identity->uid, &reading->rights.user) ||
	    !find_ids(text, "\nGid:\t", &group, &reading->rights.group))
		return;
	process_users_name(reader->users, identity->uid, clock_now_ns(), identity->user,
	                   sizeof(identity->user));
}

#define THREADS_TRIED 8

/* Hierarchies of before version 2 say "/" of a thread that has ended, and threads come and go. */
static void read_cgroup_file(const struct process_reader *reader, struct process_reading *reading)
{
	char name[40];

	for (int i = 0; reading->thread && i < THREADS_TRIED; i++) {
		snprintf(name, sizeof(name), "task/%d/cgroup", reading->thread);
		if (read_file(reading->folder, name, reader->cgroup, CGROUP_BYTES) > 0)
			return;
		reading->thread = process_living_thread(reading->pid);
	}
	read_file(reading->folder, "cgroup", reader->cgroup, CGROUP_BYTES);
}

static void read_cgroups(struct process_reader *reader, struct process_reading *reading,
                         struct process_identity *identity)
{
	struct process_cgroup cgroup;

	read_cgroup_file(reader, reading);
	process_cgroups_parse(reader->cgroup, &cgroup);
	memcpy(identity->runtime, cgroup.runtime, sizeof(identity->runtime));
	memcpy(identity->container_id, cgroup.container_id, sizeof(identity->container_id));
	memcpy(identity->pod_uid, cgroup.pod_uid, sizeof(identity->pod_uid));
	memcpy(identity->qos, cgroup.qos, sizeof(identity->qos));
	memcpy(identity->unit, cgroup.unit, sizeof(identity->unit));
	memcpy(identity->slurm_job, cgroup.slurm_job, sizeof(identity->slurm_job));
	memcpy(identity->slurm_step, cgroup.slurm_step, sizeof(identity->slurm_step));
	identity->container_by = cgroup.container_by;
	identity->pod_uid_by = cgroup.pod_by;
	identity->slurm_by = cgroup.slurm_by;
}

/* ---- its memory ---------------------------------------------------------------------------- */

/* A page that cannot be read ends it. */
static size_t read_memory(pid_t pid, uint64_t begin, uint64_t end, char *to, size_t room)
{
	size_t have = 0;

	while (begin < end && have < room) {
		size_t bytes = end - begin < room - have ? end - begin : room - have;

		bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
		if (!helper_memory(pid, begin, to + have, bytes))
			break;
		have += bytes;
		begin += bytes;
	}
	return have;
}

/* "environ" or "cmdline" */
static size_t read_block(const struct process_reader *reader, const struct process_reading *reading,
                         const char *name, char *to, size_t room)
{
	bool arguments = name[0] == 'c';
	ssize_t n;

	if (reader->options.made_proc) {
		n = read_file(reading->folder, name, to, room);
		return n > 0 ? (size_t)n : 0;
	}
	return arguments ? read_memory(reading->pid, reading->arguments, reading->arguments_end, to,
	                               room)
	                 : read_memory(reading->pid, reading->environment, reading->environment_end,
	                               to, room);
}

static void read_command(const struct process_reader *reader, const struct process_reading *reading,
                         struct process_identity *identity)
{
	char text[PAGE_BYTES];
	size_t n = read_block(reader, reading, "cmdline", text, sizeof(text));

	process_command_parse(text, n, identity->command, sizeof(identity->command));
}

/* What launchers of ranks set, in the order of who is asked first. */
struct process_rank_words {
	char slurm_job[IDENTITY_NUMBER], slurm_jobid[IDENTITY_NUMBER], slurm_step[IDENTITY_NUMBER],
		slurm_stepid[IDENTITY_NUMBER];
	char rank[4][IDENTITY_NUMBER], local[4][IDENTITY_NUMBER], world[4][IDENTITY_NUMBER];
	struct process_pod_words pod;
};

static void take_first(char to[IDENTITY_NUMBER], char (*words)[IDENTITY_NUMBER])
{
	for (size_t i = 0; i < 4 && !to[0]; i++)
		snprintf(to, IDENTITY_NUMBER, "%s", words[i]);
}

static void take_words(const struct process_rank_words *found, struct process_identity *identity)
{
	struct process_rank_words words = *found;

	take_first(identity->rank, words.rank);
	take_first(identity->local_rank, words.local);
	take_first(identity->world_size, words.world);
	if (identity->slurm_job[0])
		return; /* the cgroup knows */
	snprintf(identity->slurm_job, IDENTITY_NUMBER, "%s",
	         words.slurm_job[0] ? words.slurm_job : words.slurm_jobid);
	if (!identity->slurm_job[0])
		return;
	snprintf(identity->slurm_step, IDENTITY_NUMBER, "%s",
	         words.slurm_step[0] ? words.slurm_step : words.slurm_stepid);
	identity->slurm_by = IDENTITY_OWN_WORD;
}

/* Sets all of `wanted`: as many as there are. */
static size_t want(const struct process_reader *reader, struct process_rank_words *words,
                   struct process_identity *identity, struct process_variable *wanted)
{
	const struct process_variable fixed[] = {
		{ "SLURM_JOB_ID", words->slurm_job, IDENTITY_NUMBER },
		{ "SLURM_JOBID", words->slurm_jobid, IDENTITY_NUMBER },
		{ "SLURM_STEP_ID", words->slurm_step, IDENTITY_NUMBER },
		{ "SLURM_STEPID", words->slurm_stepid, IDENTITY_NUMBER },
		{ "SLURM_JOB_USER", identity->slurm_user, sizeof(identity->slurm_user) },
		{ "RANK", words->rank[0], IDENTITY_NUMBER },
		{ "OMPI_COMM_WORLD_RANK", words->rank[1], IDENTITY_NUMBER },
		{ "PMI_RANK", words->rank[2], IDENTITY_NUMBER },
		{ "SLURM_PROCID", words->rank[3], IDENTITY_NUMBER },
		{ "LOCAL_RANK", words->local[0], IDENTITY_NUMBER },
		{ "OMPI_COMM_WORLD_LOCAL_RANK", words->local[1], IDENTITY_NUMBER },
		{ "MPI_LOCALRANKID", words->local[2], IDENTITY_NUMBER },
		{ "SLURM_LOCALID", words->local[3], IDENTITY_NUMBER },
		{ "WORLD_SIZE", words->world[0], IDENTITY_NUMBER },
		{ "OMPI_COMM_WORLD_SIZE", words->world[1], IDENTITY_NUMBER },
		{ "PMI_SIZE", words->world[2], IDENTITY_NUMBER },
		{ "SLURM_NTASKS", words->world[3], IDENTITY_NUMBER },
		{ "POD_NAME", words->pod.name, sizeof(words->pod.name) },
		{ "POD_NAMESPACE", words->pod.namespace, sizeof(words->pod.namespace) },
		{ "HOSTNAME", words->pod.hostname, sizeof(words->pod.hostname) },
	};
	size_t n = ARRAY_SIZE(fixed);

	memcpy(wanted, fixed, sizeof(fixed));
	for (size_t i = 0; i < reader->options.choice.n; i++)
		wanted[n++] = (struct process_variable){ process_labels_variable(
								 &reader->options.choice, i),
			                                 identity->chosen[i], IDENTITY_VALUE };
	return n;
}

/* ---- its files ----------------------------------------------------------------------------- */

struct process_read_files {
	const struct process_reader *reader;
	const struct process_reading *reading;
};

static ssize_t read_in_root(void *data, const char *path, char *to, size_t bytes)
{
	const struct process_read_files *files = data;
	const struct process_reading *reading = files->reading;
	ssize_t n;
	int root;

	if (reading->rights.user == (uid_t)-1 || reading->rights.group == (gid_t)-1)
		return -EPERM;
	if (!files->reader->options.made_proc)
		return helper_read_in_root(reading->pid, path, &reading->rights, to, bytes);
	root = openat(reading->folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	n = root_file_read(reading->pid, root, path, &reading->rights, to, bytes);
	close(root);
	return n;
}

static void find_pod(const struct process_reader *reader, const struct process_reading *reading,
                     const struct process_pod_words *words, struct process_identity *identity)
{
	struct process_read_files files = { reader, reading };

	if (identity->pod_uid[0])
		process_pod_find(words, &(struct process_pod_files){ read_in_root, &files },
		                 reader->node, identity);
}

static void read_environment(struct process_reader *reader, const struct process_reading *reading,
                             struct process_identity *identity)
{
	struct process_variable wanted[PROCESS_VARIABLES];
	struct process_rank_words words = { 0 };
	size_t n = want(reader, &words, identity, wanted);
	size_t bytes = read_block(reader, reading, "environ", reader->block, PROCESS_ENVIRONMENT);

	process_environ_find(reader->block, bytes, wanted, n);
	take_words(&words, identity);
	find_pod(reader, reading, &words.pod, identity);
	identity->environment_read = bytes > 0;
	identity->environment_cut =
		reading->environment_end - reading->environment > bytes && bytes > 0;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void read_all(struct process_reader *reader, struct process_reading *reading,
                     struct process_identity *identity)
{
	memset(identity, 0, sizeof(*identity));
	identity->pid = reading->pid;
	identity->start_time = reading->start_time;
	read_name(reading, identity);
	read_user(reader, reading, identity);
	read_cgroups(reader, reading, identity);
	read_command(reader, reading, identity);
	read_environment(reader, reading, identity);
}

/* Who was given up meanwhile is asked nothing more, but its folder is that of no other. */
static bool is_still_there(const struct process_reader *reader, struct process_reading *reading)
{
	char name[IDENTITY_NAME + 1];

	return read_stat(reader, reading) ||
	       (helper_gave_up(reading->pid) &&
	        read_file(reading->folder, "comm", name, sizeof(name)) > 0);
}

/*
 * Memory is read by number: what was read is the process's only if it is there afterwards, and has
 * not begun another program meanwhile. Then it is read once more, by what it is now.
 */
bool process_reader_read(struct process_reader *reader, pid_t pid, uint64_t latest,
                         struct process_identity *identity)
{
	struct process_reading reading;
	bool there, same = false;

	memset(identity, 0, sizeof(*identity));
	if (!begin_reading(reader, pid, latest, &reading))
		return false;
	there = true;
	for (int i = 0; i < 2 && there && !same; i++) {
		uint64_t environment = reading.environment;

		read_all(reader, &reading, identity);
		there = is_still_there(reader, &reading);
		same = environment == reading.environment;
	}
	close(reading.folder);
	if (!there)
		memset(identity, 0, sizeof(*identity));
	return there;
}

/* FNV-1a */
static uint64_t hash_on(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

bool process_reader_look(const struct process_reader *reader, pid_t pid, uint64_t latest,
                         uint64_t *hash)
{
	struct process_reading reading;

	if (!begin_reading(reader, pid, latest, &reading))
		return false;
	read_file(reading.folder, "comm", reader->cgroup, CGROUP_BYTES);
	*hash = hash_on(0xcbf29ce484222325, reader->cgroup);
	read_cgroup_file(reader, &reading);
	*hash = hash_on(*hash, reader->cgroup);
	close(reading.folder);
	return true;
}
