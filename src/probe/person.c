// SPDX-License-Identifier: MIT
#include "probe/person.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/parse.h"
#include "base/process.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "trace/event.h"

#define NESTED_MAX 33   /* user namespaces, as the kernel has it */
#define MAP_BYTES  4096 /* of ranges of uids: their begin tells */

/* ---- ranges of uids ------------------------------------------------------------------------ */

struct person_range {
	uint64_t first, count, person;
};

static struct {
	pthread_mutex_t lock;
	const char *ranges_path, *users_path;
	struct timespec read; /* change of the file that was read */
	struct person_range *ranges;
	size_t n;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .ranges_path = "/etc/subuid",
	    .users_path = "/etc/passwd" };

/* ---- users by their names ------------------------------------------------------------------ */

struct person_user {
	uint64_t uid;
	UT_hash_handle hh;
	char name[];
};

/*
 * All but root, in one pass: each of thousands of ranges may name one. By the file itself, since
 * asking name services could take as long as they like.
 */
static struct person_user *read_users(void)
{
	FILE *file = fopen(known.users_path, "re");
	struct person_user *users = NULL, *user;
	struct passwd *entry;

	while (file && (entry = fgetpwent(file))) {
		user = MAP_FIND_TEXT(users, entry->pw_name);
		if (user || !entry->pw_uid)
			continue;
		user = xcalloc(1, sizeof(*user) + strlen(entry->pw_name) + 1);
		user->uid = entry->pw_uid;
		strcpy(user->name, entry->pw_name);
		HASH_ADD_STR(users, name, user);
	}
	if (file)
		fclose(file);
	return users;
}

static void free_users(struct person_user *users)
{
	MAP_FREE(users, free);
}

/* 0: there is none of that name. */
static uint64_t uid_of_name(const struct person_user *users, const char *name)
{
	const struct person_user *user = MAP_FIND_TEXT(users, name);

	return user ? user->uid : 0;
}

/* ---- the file of ranges -------------------------------------------------------------------- */

/* "name:100000:65536", where the name may be a number. */
static bool parse_range(const struct person_user *users, char *line, struct person_range *range)
{
	char *rest = line, *name = strsep(&rest, ":"), *first = strsep(&rest, ":");

	if (!rest)
		return false;
	rest[strcspn(rest, "\n")] = '\0';
	if (!parse_number(first, UINT32_MAX - 1, &range->first) ||
	    !parse_number(rest, UINT32_MAX, &range->count))
		return false;
	if (!parse_number(name, UINT32_MAX - 1, &range->person))
		range->person = uid_of_name(users, name);
	if (!range->person)
		range->person = PERSON_RANGE | range->first;
	return true;
}

static void read_ranges(void)
{
	struct person_user *users;
	struct stat st;
	char line[256];
	FILE *file;

	if (stat(known.ranges_path, &st) ||
	    (st.st_mtim.tv_sec == known.read.tv_sec && st.st_mtim.tv_nsec == known.read.tv_nsec))
		return;
	known.read = st.st_mtim;
	known.n = 0;
	users = read_users();
	file = fopen(known.ranges_path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		known.ranges = vec_room(known.ranges, known.n, sizeof(*known.ranges));
		if (parse_range(users, line, &known.ranges[known.n]))
			known.n++;
	}
	if (file)
		fclose(file);
	free_users(users);
}

void person_files(const char *ranges, const char *users)
{
	LOCKED(&known.lock);
	known.ranges_path = ranges ? ranges : "/etc/subuid";
	known.users_path = users ? users : "/etc/passwd";
	known.read = (struct timespec){ 0 };
	known.n = 0;
}

uint64_t person_of_uid(uid_t uid)
{
	uint64_t person = uid;

	if (!uid)
		return PERSON_ROOT;
	LOCKED(&known.lock);
	read_ranges();
	for (size_t i = 0; i < known.n; i++)
		if (uid >= known.ranges[i].first &&
		    uid - known.ranges[i].first < known.ranges[i].count)
			person = known.ranges[i].person;
	return person;
}

void person_ranges(void (*each)(void *data, uint64_t first, uint64_t count, uint64_t person),
                   void *data)
{
	LOCKED(&known.lock);
	read_ranges();
	for (size_t i = 0; i < known.n; i++)
		each(data, known.ranges[i].first, known.ranges[i].count, known.ranges[i].person);
}

/* ---- processes ----------------------------------------------------------------------------- */

/* The folder belongs to who it runs as, also where that forbids to look into it. */
static uint64_t person_of_folder(pid_t pid)
{
	uid_t user = 0; /* who has begun a program that has root's rights */
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st))
		return PERSON_UNKNOWN;
	if (!st.st_uid)
		process_status(pid, 0, "Uid: %u", &user);
	return person_of_uid(st.st_uid ? st.st_uid : user);
}

/* Until it is known who the process is, its uid is to blame. */
static int open_namespace(pid_t pid, const char *kind)
{
	return helper_open_namespace(pid, kind, person_of_folder(pid));
}

static int open_ours(void)
{
	return open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
}

static bool is_same(int fd, int other)
{
	struct stat st, other_st;

	return fstat(fd, &st) == 0 && fstat(other, &other_st) == 0 && st.st_ino == other_st.st_ino;
}

/* The owner of a namespace below ours. */
static uint64_t owner_of(int namespace)
{
	struct stat st;
	uid_t owner;

	if (ioctl(namespace, NS_GET_OWNER_UID, &owner) || fstat(namespace, &st))
		return PERSON_UNKNOWN;
	return owner ? person_of_uid(owner) : PERSON_NAMESPACE | st.st_ino;
}

/* Closes `namespace`. PERSON_UNKNOWN: it is ours, or not below it. */
static uint64_t owner_of_outermost(int namespace, int ours)
{
	uint64_t person = PERSON_UNKNOWN;
	bool end = is_same(namespace, ours);

	for (int i = 0; i < NESTED_MAX && !end; i++) {
		int parent = ioctl(namespace, NS_GET_PARENT);

		end = parent < 0 || is_same(parent, ours);
		if (end && parent >= 0)
			person = owner_of(namespace);
		close(namespace);
		namespace = parent;
	}
	if (namespace >= 0)
		close(namespace);
	return person;
}

static uint64_t person_of_namespace(pid_t pid)
{
	int ours = open_ours(), its = open_namespace(pid, "user");
	uint64_t person = PERSON_UNKNOWN;

	if (ours >= 0 && its >= 0)
		person = owner_of_outermost(its, ours);
	else if (its >= 0)
		close(its);
	if (ours >= 0)
		close(ours);
	return person;
}

static bool read_map(const char *path, char text[MAP_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, MAP_BYTES - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/*
 * Most processes; opening namespaces would cost more than what is asked of the process, and waits
 * for its exec. In another namespace uids of ours have other numbers: only who may give away all of
 * ours can make one in which they have the same.
 */
static bool is_in_ours(pid_t pid)
{
	char path[64], ours[MAP_BYTES], its[MAP_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	return read_map("/proc/self/uid_map", ours) && read_map(path, its) && !strcmp(ours, its);
}

uint64_t person_of_process(pid_t pid)
{
	uint64_t person;

	if (kill(pid, 0) && errno == ESRCH)
		return PERSON_UNKNOWN;
	person = is_in_ours(pid) ? PERSON_UNKNOWN : person_of_namespace(pid);
	return person == PERSON_UNKNOWN ? person_of_folder(pid) : person;
}

/* Below the bits of a machine. */
#define PERSON_BITS ((1ull << 48) - 1)

void person_add(uint64_t person, struct buf *out)
{
	uint64_t of = person & PERSON_BITS;

	if (person == PERSON_ROOT)
		buf_puts(out, "root");
	else if (person == PROCESS_UNTOLD)
		buf_puts(out, "users whom an older file does not tell apart");
	else if (person >> 62)
		buf_puts(out, "a user who is not known");
	else if (of & PERSON_RANGE)
		buf_printf(out, "the uids from %llu on", of & ~PERSON_RANGE);
	else if (of & PERSON_NAMESPACE)
		buf_printf(out, "the container with the user namespace %llu",
		           of & ~PERSON_NAMESPACE);
	else
		buf_printf(out, "user %lu", of);
}

uint64_t person_of_file(uid_t owner, uint64_t mapped_by)
{
	if (!owner)
		return PERSON_ROOT;
	return mapped_by == PERSON_ROOT || mapped_by == PERSON_UNKNOWN ? person_of_uid(owner)
	                                                               : mapped_by;
}

bool person_mounts_are_roots(pid_t pid)
{
	int ours = open_ours(), mounts = open_namespace(pid, "mnt");
	int its = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	bool same = ours >= 0 && its >= 0 && is_same(ours, its);

	if (ours >= 0)
		close(ours);
	if (mounts >= 0)
		close(mounts);
	if (its >= 0)
		close(its);
	return same;
}

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

static bool read_ids(const char *line, const char *format, uint32_t ids[3])
{
	return sscanf(line, format, &ids[0], &ids[1], &ids[2]) == 3;
}

/* Its groups, between users and rights, can take 700 KB. */
static bool read_status(int folder, const char *name, struct sight *sight)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC), found = 0;
	FILE *status = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned long long bits = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		found += read_ids(line, "Uid: %u %u %u", sight->uid) +
		         read_ids(line, "Gid: %u %u %u", sight->gid) +
		         (sscanf(line, "CapPrm: %llx", &bits) == 1);
	if (status)
		fclose(status);
	else if (fd >= 0)
		close(fd);
	sight->rights = bits;
	return found == 3;
}

static bool read_namespace(pid_t pid, const char *name, uint64_t *number)
{
	struct process_file namespace;

	if (process_look(pid, PROCESS_FILE, name, &namespace, sizeof(namespace)) < 0)
		return false;
	*number = namespace.inode;
	return true;
}

/* The kernel gives the files of who lets nobody look to root. Root's look the same either way. */
static bool read_closed(int folder, struct sight *sight)
{
	struct stat st;

	if (fstatat(folder, "status", &st, 0))
		return false;
	sight->closed = st.st_uid != sight->uid[1];
	return true;
}

static bool read_all(int folder, pid_t pid, pid_t tid, struct sight *sight)
{
	struct process_stat stat;
	char name[64];

	if (!process_stat_read(pid, 0, &stat))
		return false;
	sight->start_time = stat.start_time;
	sight->parent = stat.parent;
	sight->of_kernel = stat.flags & PF_KTHREAD;
	process_look(pid, PROCESS_TEXT, "attr/current", sight->label, sizeof(sight->label) - 1);
	/* by its number, which is not another's: it is still there when that has been looked at */
	if (!read_namespace(pid, "ns/user", &sight->user_namespace) ||
	    !read_namespace(pid, "ns/pid", &sight->pid_namespace) ||
	    !read_status(folder, "status", sight) || !read_closed(folder, sight))
		return false;
	snprintf(name, sizeof(name), "task/%d/status", tid);
	return !tid || tid == pid || faccessat(folder, name, F_OK, 0) ||
	       read_status(folder, name, sight);
}

bool sight_read(pid_t pid, pid_t tid, struct sight *sight)
{
	char path[32];
	AT_END(at_end_close) int folder;

	memset(sight, 0, sizeof(*sight));
	snprintf(path, sizeof(path), "/proc/%d", pid);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return false;
	return read_all(folder, pid, tid, sight);
}

static bool all_are(const uint32_t ids[3], uint32_t id)
{
	return ids[0] == id && ids[1] == id && ids[2] == id;
}

bool sight_covers(const struct sight *who, const struct sight *whom)
{
	return !whom->of_kernel && !whom->closed && all_are(whom->uid, who->uid[0]) &&
	       all_are(whom->gid, who->gid[0]) && !(whom->rights & ~who->rights) &&
	       whom->user_namespace == who->user_namespace &&
	       whom->pid_namespace == who->pid_namespace && !strcmp(whom->label, who->label);
}
