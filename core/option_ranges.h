// What a request may ask for, on the command line and in a batch file alike: inclusive ranges.
#pragma once

#include <cstdint>
#include <limits>

namespace minfer {

template <typename T>
struct Range {
  T lowest, highest;
};

inline constexpr int32_t kMaxCount = std::numeric_limits<int32_t>::max();

inline constexpr Range<int32_t> kNPredictRange{-1, kMaxCount};
inline constexpr Range<double> kTempRange{0, 1000};
inline constexpr Range<int32_t> kTopKRange{0, kMaxCount};
inline constexpr Range<double> kTopPRange{0, 1};
inline constexpr Range<double> kMinPRange{0, 1};
inline constexpr Range<double> kRepeatPenaltyRange{1e-3, 1000};
inline constexpr Range<int32_t> kRepeatLastNRange{-1, kMaxCount};
inline constexpr Range<double> kPresencePenaltyRange{-1000, 1000};
inline constexpr Range<double> kFrequencyPenaltyRange{-1000, 1000};
inline constexpr Range<int32_t> kLogprobsRange{0, 1000};

}  // namespace minfer
