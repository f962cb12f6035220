// Natural logarithm: the twin of `ln.rs`, which has the formula.
#pragma once

#include "device.cuh"

namespace warptape {

// Of a positive, finite, normal number; a meaningless number for anything else.
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
    double z = s * s;
    double w = z * z;
    double even = z * (P[0] + w * (P[2] + w * (P[4] + w * P[6])));
    double odd = w * (P[1] + w * (P[3] + w * P[5]));
    double r = even + odd;
    return k * LN2_HIGH + (f - (half_square - (s * (half_square + r) + k * LN2_LOW)));
}

}  // namespace warptape
