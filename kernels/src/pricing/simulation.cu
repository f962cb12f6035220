// Monte Carlo: the twin of `simulation.rs` and `greeks.rs`, which have the formulas. In `simulate_blocks` a thread
// works group by group on the paths that share a call of Philox. These are two lanes of a block in double, four in
// float. In `simulate_greeks` it works on one lane.

#include "bridge.cuh"
#include "greeks.cuh"
#include "payoffs.cuh"
#include "sums.cuh"

namespace warptape {

enum Contract { EUROPEAN, ASIAN, BARRIER, LOOKBACK, KNOCK_IN };

struct SimulationArgs {
    u64 contract, is_mixed, is_antithetic;
    Source source;
    u64 first_block, blocks;
    Terms terms;
    Terms bumped[2];  // Only for Greeks.
    double inverse_width;
    double *lanes;  // Sums of each lane, by block and sum.
};

template <typename T, template <typename> class Payoff>
__device__ inline void simulate(const SimulationArgs &args, u64 thread) {
    const int PATHS = 4 / Width<T>::WORDS;
    const u64 CALLS = LANES / PATHS;
    u64 block = thread / CALLS, call = thread % CALLS;
    if (block >= args.blocks) return;
    Payoff<T> payoff(args.terms);
    double sums[PATHS][SUMS] = {};
    for (u64 group = 0; group < GROUPS; ++group) {
        u64 number = (args.first_block + block) * GROUPS + group;
        State<T> paths[PATHS], mirrored[PATHS];
        Steps<T> bridges[PATHS];
        for (int path = 0; path < PATHS; ++path) {
            paths[path] = mirrored[path] = payoff.start();
            bridges[path].start();
        }
        for (u64 step = 0; step < args.source.steps; ++step) {
            Outer<T> steps[PATHS], extremes[PATHS];
            if (!args.source.bridge) draw_call(args.source, number, call, (u32)step, STREAM_STEPS, steps);
            if (payoff.HAS_EXTREMES) draw_call(args.source, number, call, (u32)step, STREAM_EXTREMES, extremes);
            for (int path = 0; path < PATHS; ++path) {
                T z, u = (T)0.0;
                if (args.source.bridge) {
                    z = bridges[path].bridged(args.source, number, path * CALLS + call, step);
                } else {
                    z = normal_of(steps[path]);
                }
                if (payoff.HAS_EXTREMES) u = even_of(extremes[path]);
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
            add(sums[path], 1, payoff_of, control, payoff.HAS_CONTROL);
        }
    }
    for (int path = 0; path < PATHS; ++path) {
        for (int sum = 0; sum < (int)SUMS; ++sum) {
            args.lanes[(block * SUMS + sum) * LANES + path * CALLS + call] = sums[path][sum];
        }
    }
}

// A path, and its mirror image.
template <typename T, typename Payoff>
struct Pair {
    typedef typename Number<T>::Part Part;
    Payoff payoff;
    State<T> ahead, mirrored;

    __device__ explicit Pair(const Terms &terms) : payoff(terms) {}
    __device__ void start() { ahead = mirrored = payoff.start(); }
    __device__ void step(Part z, Part u, bool is_antithetic) {
        ahead = payoff.step(ahead, z, u);
        if (is_antithetic) mirrored = payoff.step(mirrored, -z, u);
    }
};

// Greeks of the payoff and of its control, one after the other.
template <typename T, typename Payoff>
__device__ inline void outcome(const Payoff &payoff, const State<T> &state, const Term &discount, double *greeks) {
    Paid<T> paid = payoff.finish(state);
    greeks_of(double_of(paid.payoff) * discount, discount.value * (double)payoff.gamma(state), greeks);
    if (payoff.HAS_CONTROL) greeks_of(double_of(paid.control) * discount, 0.0, greeks + GREEKS);
}

template <typename T, typename Payoff>
__device__ inline void deltas(const Payoff &payoff, const State<T> &state, double discount, double *deltas) {
    Paid<T> paid = payoff.finish(state);
    deltas[0] = discount * (double)paid.payoff.by[SPOT];
    deltas[1] = discount * (double)paid.control.by[SPOT];
}

template <typename T, template <typename> class Payoff>
__device__ inline void simulate_greeks_by(const SimulationArgs &args, u64 thread) {
    typedef Dual<T, PARAMETERS> Full;
    typedef Dual<T, 1> BySpot;
    u64 block = thread / LANES, lane = thread % LANES;
    if (block >= args.blocks) return;
    Pair<Full, Payoff<Full>> pair(args.terms);
    Pair<BySpot, Payoff<BySpot>> up(args.bumped[0]), down(args.bumped[1]);
    double *sums = args.lanes + block * (GREEKS * SUMS) * LANES + lane;
    for (u64 sum = 0; sum < GREEKS * SUMS; ++sum) sums[sum * LANES] = 0.0;
    for (u64 group = 0; group < GROUPS; ++group) {
        u64 number = (args.first_block + block) * GROUPS + group;
        Steps<T> steps;
        steps.start();
        pair.start();
        up.start();
        down.start();
        for (u64 step = 0; step < args.source.steps; ++step) {
            T z = steps.normal(args.source, number, lane, step), u = (T)0.0;
            if (pair.payoff.HAS_EXTREMES) u = even_of(drawn<T>(args.source, number, lane, (u32)step, STREAM_EXTREMES));
            pair.step(z, u, args.is_antithetic);
            if (pair.payoff.HAS_GAMMA) continue;
            up.step(z, u, args.is_antithetic);
            down.step(z, u, args.is_antithetic);
        }
        double greeks[2 * GREEKS] = {}, of_up[2], of_down[2];
        outcome(pair.payoff, pair.ahead, args.terms.discount, greeks);
        double discount = args.terms.discount.value;
        deltas(up.payoff, up.ahead, discount, of_up);
        deltas(down.payoff, down.ahead, discount, of_down);
        if (args.is_antithetic) {
            double other[2 * GREEKS] = {}, other_up[2], other_down[2];
            outcome(pair.payoff, pair.mirrored, args.terms.discount, other);
            deltas(up.payoff, up.mirrored, discount, other_up);
            deltas(down.payoff, down.mirrored, discount, other_down);
            for (u64 greek = 0; greek < 2 * GREEKS; ++greek) greeks[greek] = 0.5 * (greeks[greek] + other[greek]);
            for (int part = 0; part < 2; ++part) {
                of_up[part] = 0.5 * (of_up[part] + other_up[part]);
                of_down[part] = 0.5 * (of_down[part] + other_down[part]);
            }
        }
        if (!pair.payoff.HAS_GAMMA) {
            greeks[2] = (of_up[0] - of_down[0]) * args.inverse_width;
            greeks[GREEKS + 2] = (of_up[1] - of_down[1]) * args.inverse_width;
        }
        for (u64 greek = 0; greek < GREEKS; ++greek) {
            add(sums + greek * SUMS * LANES, LANES, greeks[greek], greeks[GREEKS + greek], pair.payoff.HAS_CONTROL);
        }
    }
}

template <typename T>
__device__ inline void simulate_in(const SimulationArgs &args, u64 thread) {
    switch (args.contract) {
        case EUROPEAN: return simulate<T, European>(args, thread);
        case ASIAN: return simulate<T, Asian>(args, thread);
        case BARRIER: return simulate<T, Barrier>(args, thread);
        case KNOCK_IN: return simulate<T, KnockIn>(args, thread);
        default: return simulate<T, Lookback>(args, thread);
    }
}

template <typename T>
__device__ inline void simulate_greeks_in(const SimulationArgs &args, u64 thread) {
    switch (args.contract) {
        case EUROPEAN: return simulate_greeks_by<T, European>(args, thread);
        case ASIAN: return simulate_greeks_by<T, Asian>(args, thread);
        case BARRIER: return simulate_greeks_by<T, Barrier>(args, thread);
        case KNOCK_IN: return simulate_greeks_by<T, KnockIn>(args, thread);
        default: return simulate_greeks_by<T, Lookback>(args, thread);
    }
}

extern "C" __global__ void simulate_blocks(const __grid_constant__ SimulationArgs args) {
    u64 thread = thread_number();
    if (args.is_mixed) return simulate_in<float>(args, thread);
    simulate_in<double>(args, thread);
}

extern "C" __global__ void simulate_greeks(const __grid_constant__ SimulationArgs args) {
    u64 thread = thread_number();
    if (args.is_mixed) return simulate_greeks_in<float>(args, thread);
    simulate_greeks_in<double>(args, thread);
}

}  // namespace warptape
