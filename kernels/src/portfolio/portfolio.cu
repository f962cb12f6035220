// Profits of books in scenarios: the twin of `scenarios.rs`, `revaluation.rs` and `tree.rs`, which have the formulas.
// Numbers of neighbouring scenarios are side by side.
//
//   draw_normals       one thread per asset and two scenarios. Draws the normal numbers from which returns are made.
//   move_spots         one thread per asset and scenario. Turns normal numbers into moves of spot prices.
//   revalue_positions  one thread per position and scenario. Computes its profit.
//   sum_books          one thread per scenario. Sums profits by book.

#include "exp.cuh"
#include "normal.cuh"
#include "philox.cuh"
#include "real.cuh"

namespace warptape {

static const u64 LANES = 64, CALLS = 32, MOVES = 8;
static const u64 SPOT = 0, FORWARD = 1, DIGITAL_CASH = 3, DIGITAL_ASSET = 4;

// A position with its asset's market: `HeldTerms` of the twin.
struct HeldTerms {
    u64 instrument;
    u64 asset;
    double quantity;
    double unit;
    double sign;
    double strike;
    double years;
    double spot;
    double rate;
    double dividend_yield;
    double volatility;
    double amount;
    u64 is_future;
};

struct PortfolioArgs {
    u64 first_group;
    u64 scenarios;          // Number of scenarios, in whole groups.
    u64 assets;
    u64 positions;
    u64 books;
    u64 key;
    const double *drift;    // By asset.
    const double *factor;   // By asset and asset: a lower triangle.
    double *normal;         // By asset and scenario.
    double *move[MOVES];    // By asset and scenario; null for a column that does not move.
    const HeldTerms *terms;
    double *profit;         // By position and scenario.
    const u64 *member;      // Positions of the first book, books in it, and so on.
    const u64 *end;         // Two by book: ends of its positions and of its books in `member`.
    double *sum;            // By book and scenario.
};

extern "C" __global__ void draw_normals(const __grid_constant__ PortfolioArgs args) {
    u64 thread = thread_number(), calls = args.scenarios / LANES * CALLS;
    if (thread >= args.assets * calls) return;
    u64 asset = thread / calls, group = thread % calls / CALLS, call = thread % CALLS;
    PhiloxWords words = philox(args.key, (args.first_group + group) * CALLS + call, (u32)asset, 0);
    double *normal = args.normal + asset * args.scenarios + group * LANES + call;
    normal[0] = normal_of(outer_of(0.0, words.word[0], words.word[1]));
    normal[CALLS] = normal_of(outer_of(0.0, words.word[2], words.word[3]));
}

extern "C" __global__ void move_spots(const __grid_constant__ PortfolioArgs args) {
    u64 thread = thread_number();
    if (thread >= args.assets * args.scenarios) return;
    u64 asset = thread / args.scenarios, scenario = thread % args.scenarios;
    const double *factor = args.factor + asset * args.assets;
    double sum = args.drift[asset];
    for (u64 other = 0; other <= asset; ++other) {
        sum += factor[other] * args.normal[other * args.scenarios + scenario];
    }
    args.move[0][thread] = exp_of(sum);
}

__device__ inline double within(double x, double least, double greatest) {
    x = x > least ? x : least;
    return x < greatest ? x : greatest;
}

// Constant and slope of a move at an expiry.
__device__ inline double moved(const PortfolioArgs &args, int column, u64 at, double still, double years) {
    double constant = args.move[column] ? args.move[column][at] : still;
    double slope = args.move[column + 1] ? args.move[column + 1][at] : 0.0;
    return constant + slope * years;
}

// The payoff of an option that expires now.
__device__ inline double paid_now(const HeldTerms &terms, double spot) {
    double pays = terms.sign * (spot - terms.strike);
    if (!(pays > 0.0)) return 0.0;
    if (terms.instrument == DIGITAL_CASH) return terms.amount;
    return terms.instrument == DIGITAL_ASSET ? terms.amount * spot : pays;
}

__device__ inline double unit_value(const PortfolioArgs &args, const HeldTerms &terms, u64 at) {
    double years = terms.years;
    double spot = within(terms.spot * moved(args, 0, at, 1.0, years), 1e-12, 1e15);
    if (terms.instrument == SPOT) return spot;
    double volatility = within(terms.volatility + moved(args, 2, at, 0.0, years), 1e-6, 100.0);
    double rate = within(terms.rate + moved(args, 4, at, 0.0, years), -10.0, 10.0);
    if (terms.instrument != FORWARD && years == 0.0) return paid_now(terms, spot);
    double dividend_yield = within(terms.dividend_yield + moved(args, 6, at, 0.0, years), -10.0, 10.0);
    if (terms.is_future) dividend_yield = rate;
    double carried = exp_of(-(dividend_yield * years));
    double cash = terms.strike * exp_of(-(rate * years));
    if (terms.instrument == FORWARD) return spot * carried - cash;
    double drift = ((rate - dividend_yield) + 0.5 * (volatility * volatility)) * years;
    double deviation = volatility * __dsqrt_rn(years);
    double d1 = (ln_of_positive(spot / terms.strike) + drift) * (1.0 / deviation);
    double d2 = d1 - deviation;
    double asset = spot * carried * density_and_cdf(terms.sign * d1).cdf;
    if (terms.instrument == DIGITAL_ASSET) return terms.amount * asset;
    double cdf = density_and_cdf(terms.sign * d2).cdf;
    if (terms.instrument == DIGITAL_CASH) return terms.amount * (cash / terms.strike * cdf);
    return terms.sign * (asset - cash * cdf);
}

extern "C" __global__ void revalue_positions(const __grid_constant__ PortfolioArgs args) {
    u64 thread = thread_number();
    if (thread >= args.positions * args.scenarios) return;
    const HeldTerms terms = args.terms[thread / args.scenarios];
    double value = unit_value(args, terms, terms.asset * args.scenarios + thread % args.scenarios);
    args.profit[thread] = terms.quantity * (value - terms.unit);
}

// A sum in the twin's shape.
struct Tree {
    double waiting[32];
    u32 waits;
    u64 count;

    __device__ void add(double term) {
        for (u64 bits = count; bits & 1; bits >>= 1) term += waiting[--waits];
        waiting[waits++] = term;
        ++count;
    }

    __device__ double take() {
        double sum = waits > 0 ? waiting[--waits] : 0.0;
        while (waits > 0) sum += waiting[--waits];
        count = 0;
        return sum;
    }
};

extern "C" __global__ void sum_books(const __grid_constant__ PortfolioArgs args) {
    u64 scenario = thread_number();
    if (scenario >= args.scenarios) return;
    Tree tree;
    tree.waits = 0;
    tree.count = 0;
    for (u64 book = args.books; book-- > 0;) {
        u64 at = book == 0 ? 0 : args.end[2 * book - 1];
        for (; at < args.end[2 * book]; ++at) tree.add(args.profit[args.member[at] * args.scenarios + scenario]);
        for (; at < args.end[2 * book + 1]; ++at) tree.add(args.sum[args.member[at] * args.scenarios + scenario]);
        args.sum[book * args.scenarios + scenario] = tree.take();
    }
}

}  // namespace warptape
