// The exponential function: the twin of `exp.rs`, which has the formula.
#pragma once

#include "device.cuh"
#include "polynomial.cuh"

namespace warptape {

struct Reduced {
    double less_1;
    u64 shifted;
};

__device__ inline Reduced reduced(double x, double rest) {
    const double LOG2_E = __longlong_as_double(0x3ff71547652b82fell);
    const double SHIFT = 6755399441055744.0;
    const double LN2_HIGH = __longlong_as_double(0x3fe62e42fee00000ll);
    const double LN2_LOW = __longlong_as_double(0x3dea39ef35793c76ll);
    const double Q[10] = {
        0.5000000000000011,     0.1666666666666641,    0.04166666666652917,   0.008333333333495202, 0.0013888888943928044,
        0.00019841269505693093, 2.480149275707748e-05, 2.755758652073998e-06, 2.763038071786555e-07, 2.5000220505169073e-08,
    };
    double shifted = x * LOG2_E + SHIFT;
    double k = shifted - SHIFT;
    double r = ((x - k * LN2_HIGH) - k * LN2_LOW) + rest;
    return {r + (r * r) * estrin(Q, r), (u64)__double_as_longlong(shifted)};
}

// Two powers of two whose product is 2^k.
struct Powers {
    double first, second;

    __device__ explicit Powers(u64 shifted) {
        u64 both = (shifted + 2046) & 0x1fff;
        u64 half = both >> 1;
        first = __longlong_as_double((i64)(half << 52));
        second = __longlong_as_double((i64)((both - half) << 52));
    }
};

// e^(x + rest) for a rest of at most 1e-4.
__device__ inline double exp_of_sum(double x, double rest) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    Reduced r = reduced(x, rest);
    Powers powers(r.shifted);
    return (1.0 + r.less_1) * powers.first * powers.second;
}

__device__ inline double exp_less_1(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    Reduced r = reduced(x, 0.0);
    Powers powers(r.shifted);
    return r.less_1 * powers.first * powers.second + (powers.first * powers.second - 1.0);
}

__device__ inline double exp_of(double x) { return exp_of_sum(x, 0.0); }

// e^x = (1 + less_1) · power, for |x| ≤ 700.
struct Exp {
    double less_1, power;

    __device__ explicit Exp(double x) {
        Reduced r = reduced(x, 0.0);
        less_1 = r.less_1;
        power = __longlong_as_double((i64)((r.shifted + 1023) << 52));
    }
};

}  // namespace warptape
