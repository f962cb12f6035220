// Moves the state of slots: from a slab to packed memory and back, or to a larger slab. One thread per slot and word.

#include "device.cuh"

namespace warptape {

// Words of eight bytes of slots in memory, where either a slot's words or a word's slots lie side by side.
struct Words {
    u64 *at;          // Null for zeros.
    const u32 *slot;  // Slot by place; null if it is the place itself.
    u64 slot_stride;
    u64 word_stride;
};

struct MoveArgs {
    u64 places;
    u64 words;  // Number of words of each slot.
    Words from;
    Words to;
};

__device__ inline u64 *word_of(const Words &words, u64 place, u64 word) {
    u64 slot = words.slot ? words.slot[place] : place;
    return words.at + slot * words.slot_stride + word * words.word_stride;
}

extern "C" __global__ void move_slots(const __grid_constant__ MoveArgs args) {
    u64 thread = thread_number();
    if (thread >= args.places * args.words) return;
    u64 place = thread % args.places, word = thread / args.places;
    *word_of(args.to, place, word) = args.from.at ? *word_of(args.from, place, word) : 0;
}

}  // namespace warptape
