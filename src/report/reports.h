/* SPDX-License-Identifier: MIT */
/* What reports are made of, for the rows in reports.c. */
#ifndef CUSCOPE_REPORT_REPORTS_H
#define CUSCOPE_REPORT_REPORTS_H

#include "report/report.h"

/* These make themselves. */
report_create api_trace_report_new;
report_create gpu_trace_report_new;
report_create kern_exec_sum_report_new;
report_create kern_exec_trace_report_new;
report_create nvtx_gpu_proj_sum_report_new;
report_create nvtx_gpu_proj_trace_report_new;
report_create nvtx_kern_sum_report_new;
report_create nvtx_pushpop_trace_report_new;
report_create nvtx_sum_report_new;
report_create sums_report_new;
report_create cuda_api_sync_report_new;
report_create cuda_memcpy_async_report_new;
report_create cuda_memcpy_sync_report_new;
report_create cuda_memset_sync_report_new;
report_create gpu_gaps_report_new;
report_create gpu_time_util_report_new;
report_create findings_report_new;
report_create gaps_report_new;
report_create kernel_report_new;
report_create overview_report_new;
report_create summary_report_new;
report_create why_report_new;

/* Of these the row in reports.c has the kind. */
extern const struct report_kind channels_report, copies_report, errors_report, gpu_metrics_report,
	launch_stats_report, launches_report, memory_report, overlap_report, processes_report,
	slowest_report, streams_report, threads_report, uvm_report, xids_report;

/* What `why` finds, for a report that shows some of it: that of the options, or one of its own. */
struct consumer *why_report_kept(const struct report_options *options);

/* The same for reports whose tables are written so: to be `why` of their options. */
struct consumer *why_report_common(const struct table_options *table,
                                   const struct report_options *options);

#endif
