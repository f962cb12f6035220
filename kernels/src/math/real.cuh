// The types in which paths are computed: the twin of `real.rs` and `single.rs`. Functions have the same name for both
// types.
#pragma once

#include "normal.cuh"

namespace warptape {

union FloatBits {
    float value;
    u32 bits;
};

__device__ inline float float_of(u32 bits) {
    FloatBits both;
    both.bits = bits;
    return both.value;
}

__device__ inline u32 bits_of(float value) {
    FloatBits both;
    both.value = value;
    return both.bits;
}

__device__ inline double sqrt_of(double x) { return __dsqrt_rn(x); }
__device__ inline float sqrt_of(float x) { return sqrtf(x); }

struct ReducedFloat {
    float less_1, power;
};

__device__ inline ReducedFloat reduced(float x) {
    const float LN2_HIGH = float_of(0x3f318000u), LN2_LOW = float_of(0xb95e8083u);
    const float LOG2_E = float_of(0x3fb8aa3bu), SHIFT = 12582912.0f;
    const float Q[5] = {0.49999993f, 0.1666652f, 0.04166839f, 0.008368781f, 0.0013814707f};
    x = x > 87.0f ? 87.0f : x;
    x = x < -87.0f ? -87.0f : x;
    float shifted = x * LOG2_E + SHIFT;
    float k = shifted - SHIFT;
    float r = (x - k * LN2_HIGH) - k * LN2_LOW;
    return {r + (r * r) * estrin(Q, r), float_of((bits_of(shifted) + 127u) << 23)};
}

__device__ inline float exp_of(float x) {
    ReducedFloat r = reduced(x);
    return (1.0f + r.less_1) * r.power;
}

__device__ inline float exp_less_1(float x) {
    ReducedFloat r = reduced(x);
    return r.less_1 * r.power + (r.power - 1.0f);
}

__device__ inline float ln_of_positive(float x) {
    const float LN2_HIGH = float_of(0x3f318000u), LN2_LOW = float_of(0xb95e8083u);
    const u32 SQRT_HALF_BITS = 0x3f3504f3u;
    const float P[3] = {0.66666776f, 0.3997755f, 0.2987161f};
    u32 shifted = bits_of(x) + (0x3f800000u - SQRT_HALF_BITS);
    float k = (float)(int)(shifted >> 23) - 127.0f;
    float f = float_of((shifted & 0x007fffffu) + SQRT_HALF_BITS) - 1.0f;
    float half_square = 0.5f * f * f;
    float s = f / (2.0f + f);
    float z = s * s;
    float r = z * estrin(P, z);
    return k * LN2_HIGH + (f - (half_square - (s * (half_square + r) + k * LN2_LOW)));
}

__device__ inline float central_ratio(float r) {
    const float A[4] = {3.3871326f, 50.433228f, 159.28215f, 59.10268f};
    const float B[4] = {1.0f, 17.894861f, 78.75418f, 67.18155f};
    return estrin(A, r) / estrin(B, r);
}

__device__ inline float tail_ratio(float t) {
    const float A[4] = {-2.6464083f, -0.6746775f, 1.9207717f, 0.47856685f};
    const float B[3] = {1.0f, 1.9557887f, 0.4778886f};
    return estrin(A, t) / estrin(B, t);
}

// min(u, 1 − u) of a number u from random words, and true if u is above ½.
template <typename T>
struct Outer {
    T value;
    bool above;
};

__device__ inline Outer<double> outer_of(double, u32 high, u32 low) {
    u64 word = (u64)high << 32 | low;
    u64 mirrored = (word << 1) ^ (0 - (word >> 63));
    double half_and_more = __longlong_as_double((i64)(0x3fe0000000000000ull | mirrored >> 12));
    return {half_and_more - __longlong_as_double(0x3fdfffffffffffffll), word >> 63 == 1};
}

__device__ inline Outer<float> outer_of(float, u32 word, u32) {
    u32 mirrored = (word ^ (0u - (word >> 31))) & 0x7fffffffu;
    return {((float)(int)mirrored + 0.5f) * (1.0f / 4294967296.0f), word >> 31 == 1};
}

template <typename T>
__device__ inline T normal_of(const Outer<T> &outer) {
    T x;
    if (outer.value < (T)0.075) {
        x = tail_ratio(sqrt_of((T)-2.0 * ln_of_positive(outer.value)));
    } else {
        T q = (T)0.5 - outer.value;
        x = q * central_ratio((T)0.180625 - q * q);
    }
    return outer.above ? x : -x;
}

}  // namespace warptape
