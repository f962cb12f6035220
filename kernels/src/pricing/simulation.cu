// Monte Carlo: the twin of `draws.rs`, `payoffs.rs`, `simulation.rs` and `sums.rs`, which say what is computed. In
// `simulate_blocks` a thread works on the paths that share a call of Philox – two lanes of a block in double, four in float –
// group by group; in `sum_lanes` on one sum of a block.

#include "philox.cuh"
#include "real.cuh"

namespace warptape {

static const u64 LANES = 64, GROUPS = 8, SUMS = 5;
static const u32 STREAM_STEPS = 0, STREAM_EXTREMES = 1;

enum Contract { EUROPEAN, ASIAN, BARRIER, LOOKBACK };

struct SimulationArgs {
    u64 contract, is_mixed, is_antithetic, steps, key;
    u64 first_block, blocks;
    double spot, strike, sign, drift, diffusion, steps_count;
    double barrier, untouched, weights[2];
    double side;
    u64 is_floating;
    double *lanes;  // By block and sum, of each lane.
    double *sums;   // By block.
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
__device__ inline T greater(T a, T b) { return a > b ? a : b; }

template <typename T>
__device__ inline T lesser(T a, T b) { return a < b ? a : b; }

template <typename T>
struct Common {
    T spot, strike, sign, drift, diffusion;

    __device__ explicit Common(const SimulationArgs &args)
        : spot((T)args.spot), strike((T)args.strike), sign((T)args.sign), drift((T)args.drift),
          diffusion((T)args.diffusion) {}

    __device__ T moved(T x, T z) const { return x + (drift + diffusion * z); }
    __device__ T price(T x) const { return spot * exp_of(x); }
    __device__ T paid(T price) const { return greater(sign * (price - strike), (T)0.0); }
};

template <typename T>
struct European {
    static const bool HAS_EXTREMES = false;
    Common<T> common;

    __device__ explicit European(const SimulationArgs &args) : common(args) {}
    __device__ State<T> start() const { return {(T)0.0, (T)0.0, (T)0.0}; }
    __device__ State<T> step(State<T> state, T z, T) const { return {common.moved(state.x, z), (T)0.0, (T)0.0}; }
    __device__ Paid<T> finish(State<T> state) const { return {common.paid(common.price(state.x)), (T)0.0}; }
};

template <typename T>
struct Asian {
    static const bool HAS_EXTREMES = false;
    Common<T> common;
    T inverse_steps;

    __device__ explicit Asian(const SimulationArgs &args)
        : common(args), inverse_steps((T)(1.0 / args.steps_count)) {}
    __device__ State<T> start() const { return {(T)0.0, (T)0.0, (T)0.0}; }
    __device__ State<T> step(State<T> state, T z, T) const {
        T x = common.moved(state.x, z);
        return {x, state.second + exp_of(x), state.third + x};
    }
    __device__ Paid<T> finish(State<T> state) const {
        T arithmetic = common.spot * (state.second * inverse_steps);
        T geometric = common.price(state.third * inverse_steps);
        return {common.paid(arithmetic), common.paid(geometric)};
    }
};

template <typename T>
struct Barrier {
    static const bool HAS_EXTREMES = false;
    Common<T> common;
    T barrier, factor, untouched, always, by_probability;

    __device__ explicit Barrier(const SimulationArgs &args)
        : common(args), barrier((T)args.barrier), factor((T)(-2.0 / (args.diffusion * args.diffusion))),
          untouched((T)args.untouched), always((T)args.weights[0]), by_probability((T)args.weights[1]) {}
    __device__ State<T> start() const { return {(T)0.0, untouched, (T)0.0}; }
    __device__ State<T> step(State<T> state, T z, T) const {
        T x = common.moved(state.x, z);
        T exponent = factor * ((barrier - state.x) * (barrier - x));
        T touched = exp_of(lesser(exponent, (T)0.0));
        return {x, state.second * ((T)1.0 - touched), (T)0.0};
    }
    __device__ Paid<T> finish(State<T> state) const {
        T paid = common.paid(common.price(state.x));
        return {paid * (always + by_probability * state.second), (T)0.0};
    }
};

template <typename T>
struct Lookback {
    static const bool HAS_EXTREMES = true;
    Common<T> common;
    T side, factor;
    bool is_floating;

    __device__ explicit Lookback(const SimulationArgs &args)
        : common(args), side((T)args.side), factor((T)(-2.0 * (args.diffusion * args.diffusion))),
          is_floating(args.is_floating != 0) {}
    __device__ State<T> start() const { return {(T)0.0, (T)0.0, (T)0.0}; }
    __device__ State<T> step(State<T> state, T z, T u) const {
        T x = common.moved(state.x, z);
        T moved = x - state.x;
        T reach = sqrt_of(moved * moved + factor * ln_of_positive(u));
        T of_step = (T)0.5 * ((state.x + x) + side * reach);
        T further = greater(side * of_step, side * state.second);
        return {x, side * further, (T)0.0};
    }
    __device__ Paid<T> finish(State<T> state) const {
        T extreme = common.price(state.second);
        T floating = side * (extreme - common.price(state.x));
        return {is_floating ? floating : common.paid(extreme), (T)0.0};
    }
};

template <typename T>
struct Width;
template <>
struct Width<double> {
    static const int WORDS = 2;
};
template <>
struct Width<float> {
    static const int WORDS = 1;
};

template <typename T, typename Payoff>
__device__ inline void simulate(const SimulationArgs &args, u64 thread) {
    const int WORDS = Width<T>::WORDS, PATHS = 4 / WORDS;
    const u64 CALLS = LANES / PATHS;
    u64 block = thread / CALLS, call = thread % CALLS;
    if (block >= args.blocks) return;
    Payoff payoff(args);
    double sums[PATHS][SUMS] = {};
    for (u64 group = 0; group < GROUPS; ++group) {
        u64 number = ((args.first_block + block) * GROUPS + group) * CALLS + call;
        State<T> paths[PATHS], mirrored[PATHS];
        for (int path = 0; path < PATHS; ++path) paths[path] = mirrored[path] = payoff.start();
        for (u64 step = 0; step < args.steps; ++step) {
            PhiloxWords words = philox(args.key, number, (u32)step, STREAM_STEPS);
            PhiloxWords extremes = words;
            if (Payoff::HAS_EXTREMES) extremes = philox(args.key, number, (u32)step, STREAM_EXTREMES);
            for (int path = 0; path < PATHS; ++path) {
                int high = path * WORDS, low = high + WORDS - 1;
                T z = normal_of(outer_of((T)0.0, words.word[high], words.word[low]));
                T u = (T)0.0;
                if (Payoff::HAS_EXTREMES) {
                    Outer<T> outer = outer_of((T)0.0, extremes.word[high], extremes.word[low]);
                    u = outer.above ? (T)1.0 - outer.value : outer.value;
                }
                paths[path] = payoff.step(paths[path], z, u);
                if (args.is_antithetic) mirrored[path] = payoff.step(mirrored[path], -z, u);
            }
        }
        for (int path = 0; path < PATHS; ++path) {
            Paid<T> paid = payoff.finish(paths[path]);
            double payoff_of = (double)paid.payoff, control = (double)paid.control;
            if (args.is_antithetic) {
                Paid<T> other = payoff.finish(mirrored[path]);
                payoff_of = 0.5 * (payoff_of + (double)other.payoff);
                control = 0.5 * (control + (double)other.control);
            }
            sums[path][0] += payoff_of;
            sums[path][1] += payoff_of * payoff_of;
            if (args.contract != ASIAN) continue;
            sums[path][2] += control;
            sums[path][3] += control * control;
            sums[path][4] += payoff_of * control;
        }
    }
    for (int path = 0; path < PATHS; ++path) {
        for (int sum = 0; sum < (int)SUMS; ++sum) {
            args.lanes[(block * SUMS + sum) * LANES + path * CALLS + call] = sums[path][sum];
        }
    }
}

template <typename T>
__device__ inline void simulate_in(const SimulationArgs &args, u64 thread) {
    switch (args.contract) {
        case EUROPEAN: return simulate<T, European<T>>(args, thread);
        case ASIAN: return simulate<T, Asian<T>>(args, thread);
        case BARRIER: return simulate<T, Barrier<T>>(args, thread);
        default: return simulate<T, Lookback<T>>(args, thread);
    }
}

extern "C" __global__ void simulate_blocks(const __grid_constant__ SimulationArgs args) {
    u64 thread = thread_number();
    if (args.is_mixed) return simulate_in<float>(args, thread);
    simulate_in<double>(args, thread);
}

extern "C" __global__ void sum_lanes(const __grid_constant__ SimulationArgs args) {
    u64 sum = thread_number();
    if (sum >= args.blocks * SUMS) return;
    double *lanes = args.lanes + sum * LANES;
    for (u64 half = LANES / 2; half > 0; half /= 2) {
        for (u64 lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    args.sums[sum] = lanes[0];
}

}  // namespace warptape
