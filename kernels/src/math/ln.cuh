// Natural logarithm: the twin of `ln.rs`, which has the formula.
#pragma once

#include "device.cuh"

namespace warptape {

// z·P(z).
__device__ inline double ln_rest(const double (&p)[7], double z) {
    double w = z * z;
    double even = z * (p[0] + w * (p[2] + w * (p[4] + w * p[6])));
    double odd = w * (p[1] + w * (p[3] + w * p[5]));
    return even + odd;
}

// The logarithm of a positive, finite, normal number; a meaningless number for anything else.
__device__ inline double ln_of_positive(double x) {
    const double LN2_HIGH = __longlong_as_double(0x3fe62e42fee00000ll);
    const double LN2_LOW = __longlong_as_double(0x3dea39ef35793c76ll);
    const u64 SQRT_HALF_BITS = 0x3fe6a09e667f3bcdull;
    const u64 ONE_BITS = 0x3ff0000000000000ull;
    const u64 MANTISSA_MASK = 0x000fffffffffffffull;
    const u64 TWO_TO_52_BITS = 0x4330000000000000ull;
    const double P[7] = {
        0.6666666666666734,   0.39999999999414676, 0.2857142874238762,  0.22222198573184523,
        0.18183564326119671,  0.15314050552112712, 0.14795949700582858,
    };
    u64 shifted = (u64)__double_as_longlong(x) + (ONE_BITS - SQRT_HALF_BITS);
    double k = __longlong_as_double((i64)((shifted >> 52) | TWO_TO_52_BITS)) - (4503599627370496.0 + 1023.0);
    double f = __longlong_as_double((i64)((shifted & MANTISSA_MASK) + SQRT_HALF_BITS)) - 1.0;
    double half_square = 0.5 * f * f;
    double s = f / (2.0 + f);
    double r = ln_rest(P, s * s);
    return k * LN2_HIGH + (f - (half_square - (s * (half_square + r) + k * LN2_LOW)));
}

// The quotient of two positive, normal numbers, in the parts that its logarithm needs.
struct Quotient {
    double k, difference, sum;

    __device__ Quotient(double a, double b) {
        const u64 ONE_BITS = 0x3ff0000000000000ull, HALF_BITS = 1ull << 51;
        const u64 MANTISSA_MASK = 0x000fffffffffffffull, TWO_TO_52_BITS = 0x4330000000000000ull;
        u64 bits = (u64)__double_as_longlong(b);
        u64 shifted = (u64)__double_as_longlong(a) - bits + (ONE_BITS + HALF_BITS);
        k = __longlong_as_double((i64)((shifted >> 52) | TWO_TO_52_BITS)) - (4503599627370496.0 + 1023.0);
        b = __longlong_as_double((i64)(bits + ((shifted & ~MANTISSA_MASK) - ONE_BITS)));
        difference = a - b;
        sum = a + b;
    }

    __device__ double ln(double inverse_sum) const {
        const double LN2_HIGH = __longlong_as_double(0x3fe62e42fee00000ll);
        const double LN2_LOW = __longlong_as_double(0x3dea39ef35793c76ll);
        const double P[7] = {
            0.6666666666667287, 0.3999999999607674, 0.28571429410632404, 0.22222137243232828, 0.1818640776854456,
            0.15249151467459984, 0.15376274703230927,
        };
        double s = difference * inverse_sum;
        return k * LN2_HIGH + (2.0 * s + (s * ln_rest(P, s * s) + k * LN2_LOW));
    }
};

}  // namespace warptape
