// Detects signals on closed bars and their indicators: the twin of `slab.rs`; the relations are in the module
// `signals`. One thread per slot; a slot's bars are processed in order. A bar itself is a signal that needs no
// detection.

#include "device.cuh"

namespace warptape {

enum Zone { ZONE_NONE, ZONE_BELOW, ZONE_BETWEEN, ZONE_ABOVE };

// `params.rs`.
struct SignalParams {
    double rsi_upper, rsi_lower, zscore_threshold;
};

struct SignalArgs {
    ClosedBars bars;
    SignalParams thresholds;
    u64 *zones;  // By slot: two bits for each relation, the first one lowest.
};

__device__ inline u32 zone(double value, double upper, double lower) {
    if (value > upper) return ZONE_ABOVE;
    if (value < lower) return ZONE_BELOW;
    if (value <= upper && value >= lower) return ZONE_BETWEEN;
    return ZONE_NONE;
}

extern "C" __global__ void detect_signals(const __grid_constant__ SignalArgs args) {
    u64 place = thread_number();
    if (place >= args.bars.places) return;
    u32 slot = args.bars.slot[place];
    u32 zones = (u32)args.zones[slot];
    for (u32 number = args.bars.first[place]; number != NONE; number = args.bars.bars[number].next) {
        ClosedBar &bar = args.bars.bars[number];
        const double *at = bar.indicators;
        double close = (double)bar.close_e9 / 1e9;
        const u32 now[] = {
            zone(at[Indicator::EmaFast], at[Indicator::EmaSlow], at[Indicator::EmaSlow]),
            zone(at[Indicator::Rsi], args.thresholds.rsi_upper, args.thresholds.rsi_lower),
            zone(close, at[Indicator::BollingerUpper], at[Indicator::BollingerLower]),
            zone(at[Indicator::Zscore], args.thresholds.zscore_threshold, -args.thresholds.zscore_threshold),
        };
        u32 detected = 0, after = 0;
        for (u32 relation = 0; relation < sizeof(now) / sizeof(now[0]); ++relation) {
            u32 before = zones >> (2 * relation) & 3;
            bool enters = before != ZONE_NONE && before != now[relation];
            if (enters && now[relation] == ZONE_ABOVE) detected |= 1u << (2 * relation);
            if (enters && now[relation] == ZONE_BELOW) detected |= 2u << (2 * relation);
            after |= now[relation] << (2 * relation);
        }
        zones = after;
        bar.detected = detected;
    }
    args.zones[slot] = zones;
}

}  // namespace warptape
