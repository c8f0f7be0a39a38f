// SPDX-License-Identifier: MIT
#include "node/process_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/array.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "identity/process_environ.h"
#include "identity/process_pod.h"

/* A pod or a container. */
struct process_pods_entry {
	char id[IDENTITY_ID]; /* UID, or 64 digits */
	unsigned missed;      /* answers without it, in a row */
	UT_hash_handle hh;
	char namespace[IDENTITY_LABEL]; /* "" of a container */
	char name[];
};

struct process_pods {
	struct process_pods_entry *pods, *containers;
};

struct process_pods *process_pods_new(void)
{
	return xcalloc(1, sizeof(struct process_pods));
}

static void forget(struct process_pods_entry **entries, struct process_pods_entry *entry)
{
	MAP_DROP(*entries, entry);
}

void process_pods_free(struct process_pods *pods)
{
	if (!pods)
		return;
	while (pods->pods)
		forget(&pods->pods, pods->pods);
	while (pods->containers)
		forget(&pods->containers, pods->containers);
	free(pods);
}

size_t process_pods_count(const struct process_pods *pods)
{
	return HASH_COUNT(pods->pods);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void put(struct process_pods *pods, bool pod, const char *id, const char *name,
                const char *namespace)
{
	struct process_pods_entry **entries = pod ? &pods->pods : &pods->containers, *entry;
	unsigned most = pod ? PROCESS_PODS_MAX : PROCESS_CONTAINERS_MAX;
	size_t len = strlen(name);

	if (strlen(id) >= IDENTITY_ID || !id[0])
		return;
	entry = MAP_FIND_TEXT(*entries, id);
	if (entry || HASH_COUNT(*entries) >= most)
		return;
	entry = xcalloc(1, sizeof(*entry) + len + 1);
	strcpy(entry->id, id);
	strcpy(entry->namespace, namespace);
	memcpy(entry->name, name, len);
	HASH_ADD_STR(*entries, id, entry);
}

static const char *text_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return text ? text : "";
}

/* uid, name, namespace, and the hash that a pod without an API server has for a UID in cgroups */
static void take_pod(struct process_pods *pods, sqlite3_stmt *row)
{
	const char *name = text_of(row, 1), *namespace = text_of(row, 2);

	if (!process_pod_is_name(name, IDENTITY_POD - 1, true) ||
	    !process_pod_is_name(namespace, IDENTITY_LABEL - 1, false))
		return;
	put(pods, true, text_of(row, 0), name, namespace);
	put(pods, true, text_of(row, 3), name, namespace);
}

/* "containerd://ID", name */
static void take_container(struct process_pods *pods, sqlite3_stmt *row)
{
	const char *id = strstr(text_of(row, 0), "://"), *name = text_of(row, 1);

	if (id && process_pod_is_name(name, IDENTITY_LABEL - 1, false))
		put(pods, false, id + 3, name, "");
}

static const char pods_query[] =
	"SELECT json_extract(value, '$.metadata.uid'), json_extract(value, '$.metadata.name'), "
	"json_extract(value, '$.metadata.namespace'), "
	"json_extract(value, '$.metadata.annotations.\"kubernetes.io/config.hash\"') "
	"FROM json_each(?1, '$.items')";
static const char containers_query[] =
	"SELECT json_extract(c.value, '$.containerID'), json_extract(c.value, '$.name') "
	"FROM json_each(?1, '$.items') AS p, json_each(p.value, ?2) AS c";

/* `path`: NULL for the pods themselves. */
static int take_all(struct process_pods *pods, sqlite3 *db, const char *json, size_t bytes,
                    const char *path)
{
	sqlite3_stmt *query = NULL;
	int rc = sqlite3_prepare_v2(db, path ? containers_query : pods_query, -1, &query, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(query, 1, json, (int)bytes, SQLITE_STATIC);
	if (rc == SQLITE_OK && path)
		rc = sqlite3_bind_text(query, 2, path, -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && (rc = sqlite3_step(query)) == SQLITE_ROW) {
		if (path)
			take_container(pods, query);
		else
			take_pod(pods, query);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(query);
	return rc == SQLITE_DONE ? 0 : -EBADMSG;
}

int process_pods_read(struct process_pods *pods, const char *json, size_t bytes)
{
	static const char *const lists[] = { NULL, "$.status.containerStatuses",
		                             "$.status.initContainerStatuses",
		                             "$.status.ephemeralContainerStatuses" };
	sqlite3 *db = NULL;
	int rc = 0;

	if (bytes > INT32_MAX || sqlite3_open(":memory:", &db) != SQLITE_OK)
		rc = -EBADMSG;
	for (size_t i = 0; !rc && i < ARRAY_SIZE(lists); i++)
		rc = take_all(pods, db, json, bytes, lists[i]);
	sqlite3_close(db);
	return rc;
}

/* Of the old entries into the new ones; these are left with what is to be freed. */
static void renew(struct process_pods_entry **old, struct process_pods_entry **newer, unsigned most)
{
	struct process_pods_entry *entry, *next, *other, *all;

	HASH_ITER (hh, *old, entry, next) {
		other = MAP_FIND_TEXT(*newer, entry->id);
		if (other || entry->missed >= PROCESS_PODS_KEPT || HASH_COUNT(*newer) >= most)
			continue;
		HASH_DEL(*old, entry);
		entry->missed++;
		HASH_ADD_STR(*newer, id, entry);
	}
	all = *old;
	*old = *newer;
	*newer = all;
}

void process_pods_renew(struct process_pods *pods, struct process_pods *newer)
{
	renew(&pods->pods, &newer->pods, PROCESS_PODS_MAX);
	renew(&pods->containers, &newer->containers, PROCESS_CONTAINERS_MAX);
}

/* ---- names --------------------------------------------------------------------------------- */

static const struct process_pods_entry *find(const struct process_pods_entry *entries,
                                             const char *id)
{
	return MAP_FIND_TEXT(entries, id);
}

bool process_pods_name(const struct process_pods *pods, struct process_identity *identity)
{
	const struct process_pods_entry *pod = NULL, *container = NULL;

	identity->pod[0] = identity->namespace[0] = '\0';
	identity->pod_by = IDENTITY_UNKNOWN;
	if (identity->pod_uid_by != IDENTITY_CGROUP)
		return true;
	pod = find(pods->pods, identity->pod_uid);
	if (identity->container_by == IDENTITY_CGROUP)
		container = find(pods->containers, identity->container_id);
	if (pod) {
		process_text(identity->pod, sizeof(identity->pod), pod->name, strlen(pod->name));
		process_text(identity->namespace, sizeof(identity->namespace), pod->namespace,
		             strlen(pod->namespace));
		identity->pod_by = IDENTITY_KUBELET;
	}
	if (container)
		process_text(identity->container_name, sizeof(identity->container_name),
		             container->name, strlen(container->name));
	return pod && (container || identity->container_by != IDENTITY_CGROUP);
}
