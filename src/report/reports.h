/* SPDX-License-Identifier: MIT */
/* What makes the reports, for the rows in reports.c. */
#ifndef CUSCOPE_REPORT_REPORTS_H
#define CUSCOPE_REPORT_REPORTS_H

#include "report/at_end.h"

struct consumer *sums_report_new(const struct report *report, const struct report_options *options);
struct consumer *api_trace_report_new(const struct report *report,
                                      const struct report_options *options);
struct consumer *gpu_trace_report_new(const struct report *report,
                                      const struct report_options *options);
struct consumer *kern_exec_sum_report_new(const struct report *report,
                                          const struct report_options *options);
struct consumer *kern_exec_trace_report_new(const struct report *report,
                                            const struct report_options *options);
struct consumer *summary_report_new(const struct report *report,
                                    const struct report_options *options);

/* The expert rules of Nsight Systems. */
extern const struct at_end_ops cuda_memcpy_async_report;
extern const struct at_end_ops cuda_memcpy_sync_report;
extern const struct at_end_ops cuda_memset_sync_report;
extern const struct at_end_ops cuda_api_sync_report;
extern const struct at_end_ops gpu_gaps_report;
extern const struct at_end_ops gpu_time_util_report;

/* Ours: what Nsight Systems has no report for. */
extern const struct at_end_ops overview_report;
extern const struct at_end_ops errors_report;
extern const struct at_end_ops streams_report;
extern const struct at_end_ops threads_report;
extern const struct at_end_ops processes_report;
extern const struct at_end_ops memory_report;
extern const struct at_end_ops launches_report;
extern const struct at_end_ops gaps_report;
extern const struct at_end_ops slowest_report;
extern const struct at_end_ops findings_report;
extern const struct at_end_ops overlap_report;
extern const struct at_end_ops copies_report;
extern const struct at_end_ops launch_stats_report;

extern const struct at_end_ops nvtx_sum_report;
struct consumer *nvtx_pushpop_trace_report_new(const struct report *report,
                                               const struct report_options *options);

extern const struct at_end_ops nvtx_kern_sum_report;
struct consumer *nvtx_gpu_proj_trace_report_new(const struct report *report,
                                                const struct report_options *options);
extern const struct at_end_ops nvtx_gpu_proj_sum_report;

#endif
