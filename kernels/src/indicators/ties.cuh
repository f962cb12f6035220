// Lines on which a close may lie: the twin of `ties.rs`, which has the formula.
#pragma once

#include "device.cuh"

namespace warptape {

static const double NEAR_LINE = 1e-6;
static const double WHOLE_MAX = 2251799813685248.0;
static const double ROUND = 6755399441055744.0;
static const u32 DIGITS = 10;

// A line `units / per` standard deviations from the mean; there is none if `units` is 0.
struct Line {
    u64 units, per;
};

enum Side { INSIDE, ON, BEYOND, NOT_TOLD };

__device__ inline double rounded(double product) { return (product + ROUND) - ROUND; }

__device__ inline double units_e9(double price) {
    double product = price * 1e9;
    return fabs(product) < WHOLE_MAX ? rounded(product) : product;
}

__device__ inline bool is_near(const Line &line, double value, double at) {
    return line.units > 0 && at > 0.0 && fabs(fabs(value) - at) <= NEAR_LINE * at;
}

__device__ inline double ten_to(u32 digits) {
    const double TENS[DIGITS] = {1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    return TENS[digits];
}

// A product of 256 bits.
struct Product {
    unsigned __int128 high, low;

    __device__ Product(unsigned __int128 a, unsigned __int128 b) {
        const u64 ALL = ~0ull;
        unsigned __int128 a_high = a >> 64, a_low = a & ALL, b_high = b >> 64, b_low = b & ALL;
        unsigned __int128 lowest = a_low * b_low;
        unsigned __int128 first = a_high * b_low + (lowest >> 64);
        unsigned __int128 second = a_low * b_high + (first & ALL);
        high = a_high * b_high + (first >> 64) + (second >> 64);
        low = second << 64 | (lowest & ALL);
    }

    __device__ bool operator==(const Product &other) const { return high == other.high && low == other.low; }
    __device__ bool operator>(const Product &other) const {
        return high > other.high || (high == other.high && low > other.low);
    }
};

// `close(n)` is the n-th of `count` closes, in any order.
template <typename Close>
__device__ Side side_of(const Line &line, u64 count, double newest, Close close) {
    const i64 DISTANCE_MAX = 1ll << 48;
    u32 digits = 0;
    for (u64 at = 0; at < count; ++at) {
        double value = close(at);
        for (;; ++digits) {
            if (digits == DIGITS) return NOT_TOLD;
            double product = value * ten_to(digits);
            if (fabs(product) < WHOLE_MAX && rounded(product) / ten_to(digits) == value) break;
        }
    }
    i64 origin = (i64)rounded(newest * ten_to(digits)), sum = 0;
    unsigned __int128 squares = 0;
    for (u64 at = 0; at < count; ++at) {
        i64 distance = (i64)rounded(close(at) * ten_to(digits)) - origin;
        if (distance < 0) distance = -distance, sum -= distance;
        else sum += distance;
        if (distance >= DISTANCE_MAX) return NOT_TOLD;
        squares += (unsigned __int128)distance * (unsigned __int128)distance;
    }
    unsigned __int128 units = line.units, per = line.per, total = sum < 0 ? -sum : sum;
    Product of_close(total * total, per * per + units * units);
    Product of_line(squares * count, units * units);
    return of_close == of_line ? ON : of_close > of_line ? BEYOND : INSIDE;
}

// The next number above a value, or below it.
__device__ inline double next_to(double value, bool above) {
    if (value == 0.0) return __longlong_as_double(above ? 1ll : (i64)0x8000000000000001ull);
    return __longlong_as_double(__double_as_longlong(value) + ((value > 0.0) == above ? 1 : -1));
}

// A value that compares correctly with a line: it becomes the line itself if it lies on it.
__device__ inline double settled(double value, double line, Side side) {
    if (side == ON) return line;
    if (side == BEYOND && value <= line) return next_to(line, true);
    if (side == INSIDE && value >= line) return next_to(line, false);
    return value;
}

// A band that compares correctly with a close.
__device__ inline double settled_band(double band, double close, bool is_upper, Side side) {
    if (side == ON) return close;
    if (side == BEYOND && (is_upper ? close <= band : close >= band)) return next_to(close, !is_upper);
    if (side == INSIDE && (is_upper ? close > band : close < band)) return close;
    return band;
}

}  // namespace warptape
