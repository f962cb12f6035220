// Monte Carlo of baskets: the twin of `basket.rs` and `basket_greeks.rs`, which have the formulas. A thread works on
// one lane of a block.

#include "draws.cuh"
#include "sums.cuh"

namespace warptape {

static const u64 ASSETS_MAX = 64;

struct BasketArgs {
    u64 is_mixed, is_antithetic, assets;
    Source source;
    u64 first_block, blocks;
    double strike, sign, rate, years;
    const double *terms;  // Drifts, values, and the rows of factors; for Greeks, an `OfAsset` of each asset.
    double *lanes;        // Sums of each lane, by block and sum.
};

// The value of the basket at expiry; `side` is −1 for the mirrored path.
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
            z[asset] = normal_of(drawn<T>(args.source, number, lane, 0, STREAM_ASSETS + (u32)asset));
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

// Number of figures of the basket (price, theta, rho) and of each asset (delta, gamma, vega).
static const u64 OF_ALL = 3, OF_ASSET = 3;

struct OfAsset {
    double drift, inverse_spot, inverse_volatility, volatility_years, share, inverse_width;
};

// The value of a path's basket, and the sums over its assets.
template <typename T>
struct Side {
    T basket;
    double paid, weight, theta, rho;
};

template <typename T>
__device__ inline double pays_of(const BasketArgs &args, T basket) {
    return (double)((T)args.sign * (basket - (T)args.strike));
}

__device__ inline double signed_of(const BasketArgs &args, double pays) { return pays > 0.0 ? args.sign : 0.0; }

template <typename T>
__device__ inline void greeks_of_asset(
    const BasketArgs &args, const OfAsset &asset, T worth, T moved, Side<T> *side, double *greeks
) {
    T far = (T)asset.share * worth;
    double up = signed_of(args, pays_of(args, side->basket + far));
    double down = signed_of(args, pays_of(args, side->basket - far));
    double of_spot = (double)worth * asset.inverse_spot, held = side->weight * (double)worth;
    greeks[0] = side->weight * of_spot;
    greeks[1] = (up - down) * of_spot * asset.inverse_width;
    greeks[2] = held * ((double)moved * asset.inverse_volatility - asset.volatility_years);
    side->theta -= held * (asset.drift + (double)moved * (0.5 / args.years));
    side->rho += held;
}

template <typename T>
__device__ inline void simulate_basket_greeks_in(const BasketArgs &args, u64 thread) {
    u64 block = thread / LANES, lane = thread % LANES, columns = OF_ALL + OF_ASSET * args.assets;
    if (block >= args.blocks) return;
    double *sums = args.lanes + block * (columns * SUMS) * LANES + lane;
    for (u64 sum = 0; sum < columns * SUMS; ++sum) sums[sum * LANES] = 0.0;
    const double *drifts = args.terms, *values = drifts + args.assets, *factors = values + args.assets;
    const OfAsset *assets = (const OfAsset *)(factors + args.assets * (args.assets + 1) / 2);
    for (u64 group = 0; group < GROUPS; ++group) {
        u64 number = (args.first_block + block) * GROUPS + group;
        T z[ASSETS_MAX], moved[ASSETS_MAX], worth[2][ASSETS_MAX];
        Side<T> sides[2] = {};
        const double *factor = factors;
        for (u64 asset = 0; asset < args.assets; ++asset) {
            z[asset] = normal_of(drawn<T>(args.source, number, lane, 0, STREAM_ASSETS + (u32)asset));
            moved[asset] = (T)0.0;
            for (u64 of = 0; of <= asset; ++of) moved[asset] = moved[asset] + (T)*factor++ * z[of];
            worth[0][asset] = (T)values[asset] * exp_of((T)drifts[asset] + moved[asset]);
            sides[0].basket = sides[0].basket + worth[0][asset];
            if (!args.is_antithetic) continue;
            worth[1][asset] = (T)values[asset] * exp_of((T)drifts[asset] + -moved[asset]);
            sides[1].basket = sides[1].basket + worth[1][asset];
        }
        for (int side = 0; side < 2; ++side) {
            double pays = pays_of(args, sides[side].basket), paid = pays > 0.0 ? pays : 0.0;
            sides[side].paid = paid;
            sides[side].weight = signed_of(args, pays);
            sides[side].theta = args.rate * paid;
            sides[side].rho = -paid;
        }
        for (u64 asset = 0; asset < args.assets; ++asset) {
            double greeks[OF_ASSET], other[OF_ASSET];
            greeks_of_asset(args, assets[asset], worth[0][asset], moved[asset], &sides[0], greeks);
            if (args.is_antithetic) {
                greeks_of_asset(args, assets[asset], worth[1][asset], -moved[asset], &sides[1], other);
                for (u64 greek = 0; greek < OF_ASSET; ++greek) greeks[greek] = 0.5 * (greeks[greek] + other[greek]);
            }
            for (u64 greek = 0; greek < OF_ASSET; ++greek) {
                u64 column = OF_ALL + OF_ASSET * asset + greek;
                add(sums + column * SUMS * LANES, LANES, greeks[greek], 0.0, false);
            }
        }
        double all[2][OF_ALL];
        for (int side = 0; side < 2; ++side) {
            all[side][0] = sides[side].paid;
            all[side][1] = sides[side].theta;
            all[side][2] = args.years * sides[side].rho;
        }
        for (u64 column = 0; column < OF_ALL; ++column) {
            double found = args.is_antithetic ? 0.5 * (all[0][column] + all[1][column]) : all[0][column];
            add(sums + column * SUMS * LANES, LANES, found, 0.0, false);
        }
    }
}

extern "C" __global__ void simulate_basket_greeks(const __grid_constant__ BasketArgs args) {
    if (args.is_mixed) return simulate_basket_greeks_in<float>(args, thread_number());
    simulate_basket_greeks_in<double>(args, thread_number());
}

}  // namespace warptape
