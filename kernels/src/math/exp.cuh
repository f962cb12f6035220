// The exponential function: the twin of `exp.rs`, which has the formula.
#pragma once

#include "device.cuh"
#include "polynomial.cuh"

namespace warptape {

// e^(x + rest) for a rest of at most 1e-4.
__device__ inline double exp_of_sum(double x, double rest) {
    const double LOG2_E = __longlong_as_double(0x3ff71547652b82fell);
    const double SHIFT = 6755399441055744.0;
    const double LN2_HIGH = __longlong_as_double(0x3fe62e42fee00000ll);
    const double LN2_LOW = __longlong_as_double(0x3dea39ef35793c76ll);
    const double Q[10] = {
        0.5000000000000011,     0.1666666666666641,    0.04166666666652917,   0.008333333333495202, 0.0013888888943928044,
        0.00019841269505693093, 2.480149275707748e-05, 2.755758652073998e-06, 2.763038071786555e-07, 2.5000220505169073e-08,
    };
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double shifted = x * LOG2_E + SHIFT;
    double k = shifted - SHIFT;
    double r = ((x - k * LN2_HIGH) - k * LN2_LOW) + rest;
    double fraction = 1.0 + (r + (r * r) * estrin(Q, r));
    u64 both = ((u64)__double_as_longlong(shifted) + 2046) & 0x1fff;
    u64 half = both >> 1;
    return fraction * __longlong_as_double((i64)(half << 52)) * __longlong_as_double((i64)((both - half) << 52));
}

__device__ inline double exp_of(double x) { return exp_of_sum(x, 0.0); }

}  // namespace warptape
