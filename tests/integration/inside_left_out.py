# SPDX-License-Identifier: MIT
"""The tests that do not run with --in-process: a glob on SUBJECT:NAME, and why."""

INTEGRATION = {
    "in_process:*": "they ask for --in-process themselves",
    "in_process_as_probes:*": "they ask for --in-process themselves",
    "in_process_kinds:*": "they ask for --in-process themselves",
    "gpu_inside:*": "they say themselves whether calls are recorded inside",
    "divert:*": "they have no trace",
    "divert_process:*": "they have no trace",
    "stress_kills:*": "they ask for --in-process themselves",
    "inject:*": "they have no trace",
    "debuginfod:*": "they read files only",
    "storms:*": "their processes end while an agent is on its way, whose file then counts as not looked into (in-process.md)",
    "memleak:*": "it keeps all probes, as they walk the stack of each allocation",
    "profile:*": "profile records no calls",
    "profile_*:*": "profile records no calls",
    "processes:the_command_finds_itself_as_without_cuscope":
        "a command is told of the agent by its environment (gpu.md)",
    "output:table_says_what_each_call_did": "standard error says what is recorded inside",
    "input:closed_standard_output": "standard error says what is recorded inside",
    "counts:an_output_that_takes_nothing_for_a_while_loses_nothing":
        "it is of the rings of the programs; an agent has one of its own, of 32 MiB or what --ring-size says",
    "filters:nested_calls_of_a_runtime_are_marked": "agents tell when nested calls ended, too",
    "record:what_the_closing_line_says_was_lost_is_what_info_and_reports_say":
        "agents follow more levels than the programs do, so nothing is lost",
    "ladder:nested_deeply_*": "agents follow more levels than the programs do",
    "safety:target_under_seccomp_survives_on_a_kernel_that_would_kill_it":
        "an agent needs no return probe for durations, so a filter takes none away",
    "safety:no_returns_where_they_would_kill_and_cannot_be_declined":
        "an agent needs no return probe for durations, so a filter takes none away",
    "unwinding:tids_that_are_used_again":
        "threads of another pid namespace that have ended cannot be told from others (in-process.md)",
}

SECURITY = {
}

LEFT_OUT = {"integration": INTEGRATION, "security": SECURITY}
