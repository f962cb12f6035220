// Monte Carlo of baskets: the twin of `basket.rs`, which says what is computed. A thread works on one lane of a block.

#include "draws.cuh"
#include "sums.cuh"

namespace warptape {

static const u64 ASSETS_MAX = 64;

struct BasketArgs {
    u64 is_mixed, is_antithetic, assets, key;
    u64 first_block, blocks;
    double strike, sign;
    const double *terms;  // Drifts, values, and the rows of factors.
    double *lanes;        // By block and sum, of each lane.
};

// What the basket is worth: `side` is −1 for the path that mirrors.
template <typename T>
__device__ inline double paid_of(const BasketArgs &args, const T *moved, T side) {
    const double *drifts = args.terms, *values = drifts + args.assets;
    T basket = (T)0.0;
    for (u64 asset = 0; asset < args.assets; ++asset) {
        basket = basket + (T)values[asset] * exp_of((T)drifts[asset] + side * moved[asset]);
    }
    double paid = (double)((T)args.sign * (basket - (T)args.strike));
    return paid > 0.0 ? paid : 0.0;
}

template <typename T>
__device__ inline void simulate_basket(const BasketArgs &args, u64 thread) {
    u64 block = thread / LANES, lane = thread % LANES;
    if (block >= args.blocks) return;
    double *sums = args.lanes + block * SUMS * LANES + lane;
    for (u64 sum = 0; sum < SUMS; ++sum) sums[sum * LANES] = 0.0;
    for (u64 group = 0; group < GROUPS; ++group) {
        u64 number = (args.first_block + block) * GROUPS + group;
        T z[ASSETS_MAX], moved[ASSETS_MAX];
        const double *factor = args.terms + 2 * args.assets;
        for (u64 asset = 0; asset < args.assets; ++asset) {
            z[asset] = normal_of(drawn<T>(args.key, number, lane, 0, STREAM_ASSETS + (u32)asset));
            moved[asset] = (T)0.0;
            for (u64 of = 0; of <= asset; ++of) moved[asset] = moved[asset] + (T)*factor++ * z[of];
        }
        double payoff = paid_of(args, moved, (T)1.0);
        if (args.is_antithetic) payoff = 0.5 * (payoff + paid_of(args, moved, (T)-1.0));
        add(sums, LANES, payoff, 0.0, false);
    }
}

extern "C" __global__ void simulate_baskets(const __grid_constant__ BasketArgs args) {
    if (args.is_mixed) return simulate_basket<float>(args, thread_number());
    simulate_basket<double>(args, thread_number());
}

}  // namespace warptape
