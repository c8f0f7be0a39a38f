// SPDX-License-Identifier: MIT
#include "report/diff/welch.h"

#include <math.h>

/* The continued fraction of the incomplete beta function, by Lentz' method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	result = d;
	for (int m = 1; m <= 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = 1 + even / c;
		c = fabs(c) < tiny ? tiny : c;
		result *= d * c;
		d = 1 + odd * d;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = 1 + odd / c;
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		result *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return result;
}

/* The regularised incomplete beta function. The fraction converges fast on one side only. */
static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double welch_p_value(const struct spread *a, const struct spread *b)
{
	double error_a, error_b, difference, t_squared, freedom;

	if (a->count < 2 || b->count < 2)
		return NAN;
	error_a = pow(spread_deviation(a), 2) / (double)a->count;
	error_b = pow(spread_deviation(b), 2) / (double)b->count;
	if (error_a + error_b <= 0)
		return NAN;
	difference = spread_average(a) - spread_average(b);
	t_squared = difference * difference / (error_a + error_b);
	freedom = pow(error_a + error_b, 2) / (error_a * error_a / (double)(a->count - 1) +
	                                       error_b * error_b / (double)(b->count - 1));
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t_squared));
}
