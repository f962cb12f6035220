// Numbers with derivatives: the twin of `dual.rs`.
#pragma once

#include "real.cuh"

namespace warptape {

static const int SPOT = 0, VOLATILITY = 1, YEARS = 2, RATE = 3, PARAMETERS = 4;

template <typename T, int N>
struct Dual {
    T value, by[N];
};

typedef Dual<double, PARAMETERS> Term;

template <typename T, int N>
__device__ inline Dual<T, N> mapped(const Dual<T, N> &a, T value, T derivative) {
    Dual<T, N> result;
    result.value = value;
    for (int number = 0; number < N; ++number) result.by[number] = derivative * a.by[number];
    return result;
}

template <typename T, int N>
__device__ inline Dual<T, N> operator+(const Dual<T, N> &a, const Dual<T, N> &b) {
    Dual<T, N> result;
    result.value = a.value + b.value;
    for (int number = 0; number < N; ++number) result.by[number] = a.by[number] + b.by[number];
    return result;
}

template <typename T, int N>
__device__ inline Dual<T, N> operator-(const Dual<T, N> &a, const Dual<T, N> &b) {
    Dual<T, N> result;
    result.value = a.value - b.value;
    for (int number = 0; number < N; ++number) result.by[number] = a.by[number] - b.by[number];
    return result;
}

template <typename T, int N>
__device__ inline Dual<T, N> operator-(const Dual<T, N> &a) {
    Dual<T, N> result;
    result.value = -a.value;
    for (int number = 0; number < N; ++number) result.by[number] = -a.by[number];
    return result;
}

template <typename T, int N>
__device__ inline Dual<T, N> operator*(const Dual<T, N> &a, const Dual<T, N> &b) {
    Dual<T, N> result;
    result.value = a.value * b.value;
    for (int number = 0; number < N; ++number) result.by[number] = a.value * b.by[number] + b.value * a.by[number];
    return result;
}

template <typename T, int N>
__device__ inline Dual<T, N> exp_of(const Dual<T, N> &a) {
    T e = exp_of(a.value);
    return mapped(a, e, e);
}

template <typename T, int N>
__device__ inline Dual<T, N> exp_less_1(const Dual<T, N> &a) {
    T e = exp_less_1(a.value);
    return mapped(a, e, (T)1.0 + e);
}

template <typename T, int N>
__device__ inline Dual<T, N> sqrt_of(const Dual<T, N> &a) {
    T root = sqrt_of(a.value);
    return mapped(a, root, (T)0.5 / root);
}

__device__ inline double scaled(double a, double by) { return a * by; }
__device__ inline float scaled(float a, float by) { return a * by; }

template <typename T, int N>
__device__ inline Dual<T, N> scaled(const Dual<T, N> &a, T by) {
    return mapped(a, a.value * by, by);
}

__device__ inline double value_of(double a) { return a; }
__device__ inline float value_of(float a) { return a; }

template <typename T, int N>
__device__ inline T value_of(const Dual<T, N> &a) {
    return a.value;
}

template <typename T, int N>
__device__ inline Dual<double, N> double_of(const Dual<T, N> &a) {
    Dual<double, N> result;
    result.value = (double)a.value;
    for (int number = 0; number < N; ++number) result.by[number] = (double)a.by[number];
    return result;
}

// The kinds of numbers for which formulas are written: `double` and `float`, alone or with derivatives.
template <typename T>
struct Number {
    typedef T Part;
    static __device__ T constant(T value) { return value; }
    static __device__ T of_term(const Term &term) { return (T)term.value; }
};

template <typename T, int N>
struct Number<Dual<T, N>> {
    typedef T Part;
    static __device__ Dual<T, N> constant(T value) {
        Dual<T, N> result;
        result.value = value;
        for (int number = 0; number < N; ++number) result.by[number] = (T)0.0;
        return result;
    }
    static __device__ Dual<T, N> of_term(const Term &term) {
        Dual<T, N> result;
        result.value = (T)term.value;
        for (int number = 0; number < N; ++number) result.by[number] = (T)term.by[number];
        return result;
    }
};

template <typename T>
__device__ inline T greater(const T &a, const T &b) {
    return value_of(a) > value_of(b) ? a : b;
}

template <typename T>
__device__ inline T lesser(const T &a, const T &b) {
    return value_of(a) < value_of(b) ? a : b;
}

}  // namespace warptape
