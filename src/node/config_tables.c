// SPDX-License-Identifier: MIT
/* The sections of the configuration that are the node agent's own, and the list of all. */
#include "node/config.h"

#include <string.h>

#include "base/array.h"
#include "node/address.h"
#include "node/process_curl.h"

#define SECOND 1000000000ull

static const char *const names[] = { "cuscope", "gpuprobe", NULL };

static const char *wrong_address(const char *value)
{
	struct address address;

	return address_parse(value, &address)
	               ? NULL
	               : "is no address with a port (127.0.0.1:9407, [::1]:9407)";
}

static const char *wrong_path(const char *value)
{
	return *value == '/' && strlen(value) < 4096 ? NULL : "is no path that begins with /";
}

static const struct config_row agent_rows[] = {
	{ "listen", CONFIG_TEXT, offsetof(struct node_settings, listen), "127.0.0.1:9407", 0, 64,
	  NULL, "the address and port to serve on", wrong_address },
	{ "interval", CONFIG_DURATION, offsetof(struct node_settings, interval_ns), "1s",
	  SECOND / 10, 60 * SECOND, NULL, "how often the sums are read, from 100ms to 60s", NULL },
	{ "top", CONFIG_NUMBER, offsetof(struct node_settings, top), "20", 0, 500, NULL,
	  "how many processes have series of their own, from 0 to 500", NULL },
	{ "age", CONFIG_DURATION, offsetof(struct node_settings, age_ns), "5s", 0, 3600 * SECOND,
	  NULL, "how old a process is before it has series of its own, up to 1h", NULL },
	{ "names", CONFIG_WORD, offsetof(struct node_settings, names), "cuscope", 0, 0, names,
	  "cuscope, or gpuprobe for gpuprobe-daemon's metrics as well", NULL },
	{ "libraries", CONFIG_LIST, offsetof(struct node_settings, libraries), "", 0, 32, NULL,
	  "up to 32 CUDA libraries to hook before a process maps them, with commas", wrong_path },
	{ "connections", CONFIG_NUMBER, offsetof(struct node_settings, connections), "64", 48, 1024,
	  NULL, "how many clients may be connected at a time, from 48 to 1024", NULL },
};

static const struct config_row tls_rows[] = {
	{ "certificate", CONFIG_TEXT, offsetof(struct node_settings, certificate), "", 0, 4096,
	  NULL, "the file of the certificate and its chain (PEM)", NULL },
	{ "key", CONFIG_TEXT, offsetof(struct node_settings, key), "", 0, 4096, NULL,
	  "the file of the certificate's key (PEM)", NULL },
	{ "token", CONFIG_TEXT, offsetof(struct node_settings, token), "", 0, 4096, NULL,
	  "the file of the token that clients have to send", NULL },
};

static const struct config_row account_rows[] = {
	{ "enabled", CONFIG_FLAG, offsetof(struct node_settings, account), "no", 0, 0, NULL,
	  "yes: while somebody looks at the page, what 'cuscope why' records is recorded of the "
	  "busiest processes, inside of them as well; wants the token of [tls]",
	  NULL },
	{ "processes", CONFIG_NUMBER, offsetof(struct node_settings, account_processes), "8", 1,
	  ACCOUNT_PROCESSES_MOST, NULL, "how many these are, from 1 to 64", NULL },
};

static const struct config_row leaks_rows[] = {
	{ "interval", CONFIG_DURATION, offsetof(struct node_settings, leak_interval_ns), "30s",
	  SECOND / 10, 86400 * SECOND, NULL,
	  "between two looks at what places hold, from 100ms to 24h", NULL },
	{ "older", CONFIG_DURATION, offsetof(struct node_settings, leak_older_ns), "1m", 0,
	  86400 * SECOND, NULL, "only memory that is this old is looked at, up to 24h", NULL },
	{ "places", CONFIG_NUMBER, offsetof(struct node_settings, leak_places), "20", 0, 200, NULL,
	  "how many suspected places are shown, from 0 to 200", NULL },
};

static const char *wrong_env(const char *value)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	if (!*value || !strchr(letters, *value) || strlen(value) > 64 ||
	    value[1 + strspn(value + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	                                "0123456789")])
		return "is no name of a variable (letters, digits and _, no digit first, up to 64)";
	return NULL;
}

static const struct config_row labels_rows[] = {
	{ "env", CONFIG_LIST, offsetof(struct node_settings, label_env), "", 0, 16, NULL,
	  "up to 16 variables of a process's environment that become labels, with commas",
	  wrong_env },
};

static const char *wrong_url(const char *value)
{
	return !*value || process_curl_is_url(value) ? NULL : "is no address that begins https://";
}

static const struct config_row kubelet_rows[] = {
	{ "url", CONFIG_TEXT, offsetof(struct node_settings, kubelet_url), "", 0, 1024, NULL,
	  "where to ask for the names of pods (https://NODE:10250/pods); without it nobody is "
	  "asked",
	  wrong_url },
	{ "token", CONFIG_TEXT, offsetof(struct node_settings, kubelet_token),
	  "/var/run/secrets/kubernetes.io/serviceaccount/token", 0, 4096, NULL,
	  "the file of the token that the kubelet knows us by", NULL },
	{ "ca", CONFIG_TEXT, offsetof(struct node_settings, kubelet_authority),
	  "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", 0, 4096, NULL,
	  "the file of certificates that the kubelet's is signed by, or itself (PEM)", NULL },
};

const struct config_table config_agent = { "agent", agent_rows, ARRAY_SIZE(agent_rows) };
const struct config_table config_tls = { "tls", tls_rows, ARRAY_SIZE(tls_rows) };
const struct config_table config_account = { "account", account_rows, ARRAY_SIZE(account_rows) };
const struct config_table config_leaks = { "leaks", leaks_rows, ARRAY_SIZE(leaks_rows) };
const struct config_table config_labels = { "labels", labels_rows, ARRAY_SIZE(labels_rows) };
const struct config_table config_kubelet = { "kubelet", kubelet_rows, ARRAY_SIZE(kubelet_rows) };

/* One line for each part. */
const struct config_table *const config_tables[] = {
	&config_agent,    &config_tls,    &config_account,
	&config_leaks,    &config_labels, &config_kubelet,
	&config_recorder, &config_spool,  &config_rules,
	&config_ranks,    NULL,
};
