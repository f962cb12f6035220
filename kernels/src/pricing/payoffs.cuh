// Payoffs of paths: the twin of `payoffs.rs`, which has the formulas.
#pragma once

#include "dual.cuh"

namespace warptape {

// Constants of `terms.rs`, and two that follow from them.
struct Terms {
    Term spot, drift, diffusion, barrier, factor, discount;
    double strike, sign, steps_count, untouched, weights[2], side, mean, gamma_slope;
    u64 is_floating;
};

template <typename T>
struct State {
    T x, second, third;
};

template <typename T>
struct Paid {
    T payoff, control;
};

template <typename T>
struct Common {
    typedef typename Number<T>::Part Part;
    T spot, beyond;
    Part sign;
    T drift, diffusion;

    __device__ explicit Common(const Terms &terms)
        : spot(Number<T>::of_term(terms.spot)), beyond(Number<T>::of_term(Number<Term>::constant(terms.strike) - terms.spot)),
          sign((Part)terms.sign), drift(Number<T>::of_term(terms.drift)),
          diffusion(Number<T>::of_term(terms.diffusion)) {}

    static __device__ T zero() { return Number<T>::constant((Part)0.0); }
    __device__ T moved(const T &x, Part z) const { return x + (drift + scaled(diffusion, z)); }
    __device__ T gained(const T &x) const { return spot * exp_less_1(x); }
    __device__ T paid(const T &gained) const { return greater(scaled(gained - beyond, sign), zero()); }
};

template <typename T>
struct European {
    static const bool HAS_CONTROL = false, HAS_EXTREMES = false, HAS_GAMMA = true;
    typedef typename Number<T>::Part Part;
    Common<T> common;
    Part mean, gamma_slope;

    __device__ explicit European(const Terms &terms)
        : common(terms), mean((Part)terms.mean), gamma_slope((Part)terms.gamma_slope) {}
    __device__ State<T> start() const { return {common.zero(), common.zero(), common.zero()}; }
    __device__ State<T> step(const State<T> &state, Part z, Part) const {
        return {common.moved(state.x, z), common.zero(), common.zero()};
    }
    __device__ Paid<T> finish(const State<T> &state) const {
        return {common.paid(common.gained(state.x)), common.zero()};
    }
    __device__ Part gamma(const State<T> &state) const {
        Part paid = value_of(common.paid(common.gained(state.x)));
        Part weighted = gamma_slope * (value_of(state.x) - mean);
        return paid > (Part)0.0 ? weighted : (Part)0.0;
    }
};

template <typename T>
struct Asian {
    static const bool HAS_CONTROL = true, HAS_EXTREMES = false, HAS_GAMMA = false;
    typedef typename Number<T>::Part Part;
    Common<T> common;
    Part inverse_steps;

    __device__ explicit Asian(const Terms &terms) : common(terms), inverse_steps((Part)(1.0 / terms.steps_count)) {}
    __device__ State<T> start() const { return {common.zero(), common.zero(), common.zero()}; }
    __device__ State<T> step(const State<T> &state, Part z, Part) const {
        T x = common.moved(state.x, z);
        return {x, state.second + exp_less_1(x), state.third + x};
    }
    __device__ Paid<T> finish(const State<T> &state) const {
        T arithmetic = common.spot * scaled(state.second, inverse_steps);
        T geometric = common.gained(scaled(state.third, inverse_steps));
        return {common.paid(arithmetic), common.paid(geometric)};
    }
    __device__ Part gamma(const State<T> &) const { return (Part)0.0; }
};

template <typename T>
struct Barrier {
    static const bool HAS_CONTROL = false, HAS_EXTREMES = false, HAS_GAMMA = false;
    typedef typename Number<T>::Part Part;
    Common<T> common;
    T barrier, factor;
    Part untouched, always, by_probability;

    __device__ explicit Barrier(const Terms &terms)
        : common(terms), barrier(Number<T>::of_term(terms.barrier)), factor(Number<T>::of_term(terms.factor)),
          untouched((Part)terms.untouched), always((Part)terms.weights[0]), by_probability((Part)terms.weights[1]) {}
    __device__ State<T> start() const { return {common.zero(), Number<T>::constant(untouched), common.zero()}; }
    __device__ State<T> step(const State<T> &state, Part z, Part) const {
        T x = common.moved(state.x, z);
        T exponent = factor * ((barrier - state.x) * (barrier - x));
        T still_untouched = -exp_less_1(lesser(exponent, common.zero()));
        return {x, state.second * still_untouched, common.zero()};
    }
    __device__ Paid<T> finish(const State<T> &state) const {
        T paid = common.paid(common.gained(state.x));
        return {paid * (Number<T>::constant(always) + scaled(state.second, by_probability)), common.zero()};
    }
    __device__ Part gamma(const State<T> &) const { return (Part)0.0; }
};

template <typename T>
struct KnockIn {
    static const bool HAS_CONTROL = false, HAS_EXTREMES = false, HAS_GAMMA = false;
    typedef typename Number<T>::Part Part;
    Common<T> common;
    T barrier, factor;
    Part touched;

    __device__ explicit KnockIn(const Terms &terms)
        : common(terms), barrier(Number<T>::of_term(terms.barrier)), factor(Number<T>::of_term(terms.factor)),
          touched((Part)(1.0 - terms.untouched)) {}
    __device__ State<T> start() const { return {common.zero(), Number<T>::constant(touched), common.zero()}; }
    __device__ State<T> step(const State<T> &state, Part z, Part) const {
        T x = common.moved(state.x, z);
        T exponent = factor * ((barrier - state.x) * (barrier - x));
        T of_step = exp_of(lesser(exponent, common.zero()));
        T one = Number<T>::constant((Part)1.0);
        return {x, state.second + (one - state.second) * of_step, common.zero()};
    }
    __device__ Paid<T> finish(const State<T> &state) const {
        return {common.paid(common.gained(state.x)) * state.second, common.zero()};
    }
    __device__ Part gamma(const State<T> &) const { return (Part)0.0; }
};

template <typename T>
struct Lookback {
    static const bool HAS_CONTROL = false, HAS_EXTREMES = true, HAS_GAMMA = false;
    typedef typename Number<T>::Part Part;
    Common<T> common;
    T factor;
    Part side;
    bool is_floating;

    __device__ explicit Lookback(const Terms &terms)
        : common(terms), factor(Number<T>::of_term(terms.factor)), side((Part)terms.side),
          is_floating(terms.is_floating != 0) {}
    __device__ State<T> start() const { return {common.zero(), common.zero(), common.zero()}; }
    __device__ State<T> step(const State<T> &state, Part z, Part u) const {
        T x = common.moved(state.x, z);
        T moved = x - state.x;
        T reach = sqrt_of(moved * moved + scaled(factor, ln_of_positive(u)));
        T of_step = scaled((state.x + x) + scaled(reach, side), (Part)0.5);
        T further = greater(scaled(of_step, side), scaled(state.second, side));
        return {x, scaled(further, side), common.zero()};
    }
    __device__ Paid<T> finish(const State<T> &state) const {
        T extreme = common.gained(state.second);
        T floating = scaled(extreme - common.gained(state.x), side);
        return {is_floating ? floating : common.paid(extreme), common.zero()};
    }
    __device__ Part gamma(const State<T> &) const { return (Part)0.0; }
};

}  // namespace warptape
