/* SPDX-License-Identifier: MIT */
/* The reports' create functions, for the rows in reports.c. */
#ifndef CUSCOPE_REPORT_REPORTS_H
#define CUSCOPE_REPORT_REPORTS_H

#include "report/report.h"

struct consumer *summary_report_new(const struct report *report,
                                    const struct report_options *options);

#endif
