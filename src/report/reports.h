/* SPDX-License-Identifier: MIT */
/* What reports are made of, for the rows in reports.c. */
#pragma once

#include "report/report.h"

/* Those of Nsight Systems. */
extern const struct report_kind api_trace_report, gpu_trace_report, kern_exec_sum_report,
	kern_exec_trace_report, nvtx_gpu_proj_sum_report, nvtx_gpu_proj_trace_report,
	nvtx_kern_sum_report, nvtx_pushpop_trace_report, nvtx_sum_report, sums_report;

/* Its expert rules. */
extern const struct report_kind expert_report, gpu_gaps_report, gpu_time_util_report;

/* Ours: what Nsight Systems has no report for. */
extern const struct report_kind channels_report, copies_report, errors_report, findings_report,
	gaps_report, gpu_metrics_report, kernel_report, launch_stats_report, launches_report,
	memory_report, overlap_report, overview_report, processes_report, ranks_report,
	slowest_report, stalls_report, streams_report, summary_report, threads_report, uvm_report,
	why_report, xids_report;

/* What `why` finds, for a report that shows some of it: that of the options, or one of its own. */
struct consumer *why_report_kept(const struct report_options *options);

/* The same for reports whose tables are written so: to be `why` of their options. */
struct consumer *why_report_common(const struct table_options *table,
                                   const struct report_options *options);
